// The spread of values per name: from least to most, the middle half as a box, the median in it.

kinds.boxes = (data) => {
  const all = data.boxes.map((box) => {
    const [count, ...five] = unpacked(box.values, 6);
    return { ...box, count, five };
  });
  const marks = data.marks;
  const PARTS = ["least", "lower quartile", "median", "upper quartile", "most"];
  let boxes = all;
  let span = [0, 1];
  const onX = () => "x";
  const lift = (value) => (data.value.log && value <= 0 ? span[0] : value);

  return {
    get zooms() { return boxes.length > ALL_ROWS ? "xy" : "x"; },
    refresh() {
      boxes = all.filter((box) => ranks.has(box.rank));
      span = framed(extent(boxes.flatMap((box) => box.five).concat(marks.map((mark) => mark.at)), data.value.log), data.value.log);
    },
    marks: () => boxes.length,
    tracks: () => (boxes.length ? 1 : 0),
    length: () => boxes.length,
    height: (width) => rowsHeight(boxes.length, width) + 24,

    spot(_, mark) {
      const box = boxes[mark];
      const parts = box.five.map((value, part) => `${PARTS[part]}: ${said(value, data.value.quantity)}`);
      return {
        lines: [box.label, ...parts, counted(box.count, "value", "values")],
        point: [lift(box.five[2]), mark],
        share: [share(lift(box.five[2]), span, data.value.log), (mark + 0.5) / boxes.length],
      };
    },

    near([, y]) {
      const mark = Math.round(y);
      return boxes[mark] ? { track: 0, mark } : null;
    },

    option(width, view) {
      const { letters, left } = room(boxes.map((box) => box.label), width);
      const colour = lineColour(0, 1);
      return {
        grid: { left, right: 44, top: 24, bottom: 80 },
        xAxis: valueAxis(data.value, span, { nameLocation: "middle", nameGap: 26 }),
        yAxis: nameAxis(boxes.map((box) => box.label), letters, view, this.height(width) - 104),
        dataZoom: zooms(this.zooms, width),
        series: [
          {
            type: "boxplot",
            silent: true,
            boxWidth: [3, 16],
            data: boxes.map((box) => box.five.map(lift)),
            itemStyle: { color: theme.colour("filler"), borderColor: colour, borderWidth: 1.5 },
          },
          markSeries(marks, { x: data.value }, { x: span }, onX, "start"),
        ],
      };
    },

    legend: () => [element("span", { class: "key" }, "least \u2013 [ lower quartile | median | upper quartile ] \u2013 most"), ...markLegend(marks, { x: data.value }, onX)],
  };
};
