SELECT dev, rail, COUNT(*) AS requests, SUM(duration) AS busy
FROM AWS_OFI_NCCL
WHERE event = $event AND dev IS NOT NULL AND rail IS NOT NULL
GROUP BY dev, rail
