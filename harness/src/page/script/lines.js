// Lines: numbers over numbers, broken where nothing was measured.

const FEW_LINES = 12;
const REACH = 40; // pixels around a pointer within which a point is meant

kinds.lines = (data, changed) => {
  const all = data.lines.map((line) => {
    const ys = unpacked(line.ys, 1);
    const count = line.ys === "" && (line.steps ?? line.xs) === "" ? 0 : ys.length;
    const xs = line.steps === undefined ? unpacked(line.xs, count) : summed(line.steps, count);
    return { label: line.label, rank: line.rank, xs, ys: ys.slice(0, count) };
  });
  const hidden = new Set();
  const isFew = all.length <= FEW_LINES;
  const marksOn = (along) => data.marks.filter((mark) => mark.along === along).map((mark) => mark.at);
  let lines = all;
  let [xs, ys] = [[0, 1], [0, 1]];

  const lift = (value, [low], log) => (log && value !== null && value <= 0 ? low : value);

  return {
    zooms: "xy",
    refresh() {
      lines = all.filter((line) => ranks.has(line.rank) && !hidden.has(line.label));
      const of = (axis, along) => {
        const ends = [];
        for (const line of lines) ends.push(...extent(line[axis].filter((value) => value !== null), data[along].log && true));
        return ends.concat(marksOn(along));
      };
      const wide = extent(of("xs", "x"), data.x.log);
      xs = wide[0] === wide[1] ? framed(wide, data.x.log) : wide;
      ys = framed(extent(of("ys", "y"), data.y.log), data.y.log);
    },
    marks: () => lines.reduce((sum, line) => sum + line.xs.length, 0),
    tracks: () => lines.length,
    length: (track) => lines[track].xs.length,
    height: (width) => (isNarrow(width) ? 320 : 420),

    spot(track, mark) {
      const line = lines[track];
      const [x, y] = [line.xs[mark], line.ys[mark]];
      const drawn = [lift(x, xs, data.x.log), y === null ? ys[0] : lift(y, ys, data.y.log)];
      return {
        lines: [line.label, `${data.x.name}: ${said(x, data.x.quantity)}`, `${data.y.name}: ${said(y, data.y.quantity)}`],
        point: drawn,
        share: [share(drawn[0], xs, data.x.log), 1 - share(drawn[1], ys, data.y.log)].map((part, axis) => (axis ? 1 - part : part)),
        series: track,
      };
    },

    near([x], pixel, toPixel) {
      let best = null;
      lines.forEach((line, track) => {
        let [from, to] = [0, line.xs.length];
        while (from < to) {
          const middle = (from + to) >> 1;
          if (line.xs[middle] < x) from = middle + 1;
          else to = middle;
        }
        for (let mark = Math.max(0, from - 3); mark < Math.min(line.xs.length, from + 3); mark += 1) {
          if (line.ys[mark] === null) continue;
          const [left, top] = toPixel([lift(line.xs[mark], xs, data.x.log), lift(line.ys[mark], ys, data.y.log)]);
          const distance = Math.hypot(left - pixel[0], top - pixel[1]);
          if (distance <= REACH && (!best || distance < best.distance)) best = { track, mark, distance };
        }
      });
      return best;
    },

    option(width) {
      const many = lines.length > FEW_LINES;
      return {
        grid: { left: isNarrow(width) ? 62 : 78, right: isNarrow(width) ? 16 : 44, top: 38, bottom: 78 },
        xAxis: valueAxis(data.x, xs, { nameLocation: "middle", nameGap: 26, splitLine: { show: false } }),
        yAxis: valueAxis(data.y, ys, { nameTextStyle: { align: "left", color: theme.colour("ink"), padding: [0, 0, 0, -60] } }),
        dataZoom: zooms("xy", width),
        series: [
          ...lines.map((line) => ({
            type: "line",
            data: line.xs.map((x, mark) => [lift(x, xs, data.x.log), lift(line.ys[mark], ys, data.y.log)]),
            showSymbol: line.xs.length <= 40,
            symbolSize: 5,
            silent: true,
            clip: true,
            color: lineColour(all.indexOf(line), all.length),
            lineStyle: { width: many ? 1 : 1.75, opacity: lines.length > 64 ? 0.4 : many ? 0.7 : 1 },
            emphasis: { lineStyle: { width: 3.5, opacity: 1, color: many ? theme.colour("accent") : undefined } },
          })),
          markSeries(data.marks, data, { x: xs, y: ys }),
        ],
      };
    },

    legend() {
      const keys = markLegend(data.marks, data);
      const colours = (at) => lineColour(at, all.length);
      if (isFew) return all.length > 1 ? [...toggles(all.map((line) => line.label), hidden, colours, changed), ...keys] : keys;
      const scale = element("i", { class: "scale" });
      scale.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((part) => colours(part * (all.length - 1))).join(",")})`;
      return [element("span", { class: "key" }, fitted(all[0].label, 24), scale, fitted(all.at(-1).label, 24)), ...keys];
    },
  };
};
