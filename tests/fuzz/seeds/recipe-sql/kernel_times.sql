SELECT
    shortName             AS kernel,
    deviceId              AS device,
    COUNT(*)              AS runs,
    SUM("end" - start)    AS total,
    AVG("end" - start)    AS mean,
    MEDIAN("end" - start) AS median,
    MIN("end" - start)    AS least,
    MAX("end" - start)    AS most
FROM CUDA_KERNEL
WHERE "end" >= start
GROUP BY shortName, deviceId
ORDER BY total DESC
