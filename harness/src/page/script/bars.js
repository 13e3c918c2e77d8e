// One number per name, in the order given, names on the left because they are long.

const ROW = 26;
const ALL_ROWS = 40;

function rowsHeight(count, width) {
  const each = count > ALL_ROWS ? 0 : ROW;
  return (each ? count * each : Math.min(620, count * (isNarrow(width) ? 12 : 14))) + 92;
}

kinds.bars = (data) => {
  const all = data.bars.map((bar) => ({ ...bar, value: unpacked(bar.values, 1)[0] }));
  const marks = data.marks;
  let bars = all;
  let span = [0, 1];
  const label = (bar) => (bar.value === null ? `${bar.label} (${NOT_MEASURED})` : bar.label);
  const onX = () => "x";

  return {
    get zooms() { return bars.length > ALL_ROWS ? "y" : ""; },
    refresh() {
      bars = all.filter((bar) => ranks.has(bar.rank));
      const values = bars.map((bar) => bar.value).concat(marks.map((mark) => mark.at));
      const [low, high] = extent(values, data.value.log);
      // A bar is as long as its number: it begins at zero.
      span = data.value.log ? [low / 2, high * 1.2] : [Math.min(low, 0) * 1.08, Math.max(high, 0) * 1.08 || 1];
      if (data.value.quantity === "percent" && span[0] === 0 && high <= 100) span[1] = Math.min(span[1], 100);
    },
    marks: () => bars.length,
    tracks: () => (bars.length ? 1 : 0),
    length: () => bars.length,
    height: (width) => rowsHeight(bars.length, width),

    spot(_, mark) {
      const bar = bars[mark];
      const end = bar.value === null ? span[0] : Math.max(span[0], Math.min(span[1], bar.value));
      return {
        lines: [bar.label, `${data.value.name}: ${said(bar.value, data.value.quantity)}`],
        point: [end, mark],
        share: [share(end, span, data.value.log), (mark + 0.5) / bars.length],
      };
    },

    near([, y]) {
      const mark = Math.round(y);
      return bars[mark] ? { track: 0, mark } : null;
    },

    option(width, view) {
      const { letters, left } = room(bars.map(label), width);
      const areFew = bars.length <= ALL_ROWS;
      return {
        grid: { left, right: areFew ? 84 : 44, top: 24, bottom: areFew ? 56 : 60 },
        xAxis: valueAxis(data.value, span, { nameLocation: "middle", nameGap: 26 }),
        yAxis: nameAxis(bars.map(label), letters, view, this.height(width) - 84),
        dataZoom: zooms(this.zooms, width),
        series: [
          {
            type: "bar",
            silent: true,
            barMaxWidth: 18,
            data: bars.map((bar) => ({ value: bar.value ?? "-" })),
            itemStyle: { color: lineColour(0, 1) },
            label: { show: areFew, position: "right", color: theme.colour("ink"), fontSize: 11, formatter: ({ dataIndex }) => short(bars[dataIndex].value, data.value.quantity) },
          },
          markSeries(marks, { x: data.value }, { x: span }, onX, "start"),
        ],
      };
    },

    legend: () => markLegend(marks, { x: data.value }, onX),
  };
};
