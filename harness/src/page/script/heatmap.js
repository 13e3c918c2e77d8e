// A map: a row per place, a column per span of time, hatched where nothing was measured.

kinds.heatmap = (data) => {
  const places = data.rows.map((row) => ({ ...row }));
  const offsets = unpacked(data.edges, 1);
  const bins = Math.max(offsets.length - 1, 0);
  // Moments as they are where a script's numbers hold them, else from the first.
  const base = bins && Number.isSafeInteger(Number(data.from) + offsets[bins]) ? Number(data.from) : 0;
  const edges = offsets.map((offset) => base + offset);
  const [first, last] = bins ? [edges[0], edges[bins]] : [0, 1];
  for (const row of places) row.values = unpacked(row.values, bins);
  const measured = places.flatMap((row) => row.values.filter((value) => value !== null)).sort((a, b) => a - b);
  const middle = measured.length ? measured[measured.length >> 1] : 0;
  const [least, highest] = extent(measured, data.value.log);
  const low = data.value.log ? least : Math.min(least, 0);
  const high = Math.max(data.most ?? highest, highest);
  const span = last - first || 1;
  const isHatched = places.some((row) => row.values.includes(null));
  let rows = places;

  const shareOf = (value) => (high > low ? share(value, [low, high], data.value.log) : 0);

  // Where several cells share a pixel, the one that is farthest from what is usual is seen.
  function unusual(rowFrom, rowTo, binFrom, binTo) {
    let found = null;
    for (let row = rowFrom; row < rowTo; row += 1) {
      for (let bin = binFrom; bin < binTo; bin += 1) {
        const value = rows[row].values[bin];
        if (value !== null && (found === null || Math.abs(value - middle) > Math.abs(found - middle))) found = value;
      }
    }
    return found;
  }

  function raster(box, xOf, yOf, band) {
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.max(1, Math.round(box.width * ratio)), Math.max(1, Math.round(box.height * ratio))];
    const image = new ImageData(wide, high);
    const [left, right] = [xOf(first), xOf(last)];
    // Which cells each column and each row of pixels shows.
    let bin = 0;
    const columns = Array.from({ length: wide }, (_, pixel) => {
      const time = (at) => first + ((box.x + at / ratio - left) / (right - left || 1)) * span;
      while (bin + 1 < bins && edges[bin + 1] <= time(pixel)) bin += 1;
      let to = bin + 1;
      while (to < bins && edges[to] < time(pixel + 1) - span * 1e-9 && edges[to + 1] <= time(pixel + 1)) to += 1;
      return [bin, to];
    });
    const top = yOf(0) - band / 2;
    const rowAt = (pixel) => Math.max(0, Math.min(rows.length - 1, Math.floor((box.y + pixel / ratio - top) / band)));
    let before = null;
    for (let pixel = 0; pixel < high; pixel += 1) {
      const isLarge = band * ratio >= 1;
      const from = rowAt(isLarge ? pixel + 0.5 : pixel);
      const to = isLarge ? from + 1 : Math.max(from + 1, rowAt(pixel + 1));
      const line = pixel * wide * 4;
      if (before && before.from === from && before.to === to) {
        image.data.copyWithin(line, before.line, before.line + wide * 4);
      } else {
        columns.forEach(([binFrom, binTo], column) => {
          const value = unusual(from, to, binFrom, binTo);
          if (value === null) return;
          const colour = SCALE[Math.round(Math.max(0, Math.min(1, shareOf(value))) * (STEPS - 1))];
          image.data.set(colour, line + column * 4);
          image.data[line + column * 4 + 3] = 255;
        });
      }
      before = { from, to, line };
    }
    const cells = document.createElement("canvas");
    [cells.width, cells.height] = [wide, high];
    cells.getContext("2d").putImageData(image, 0, 0);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [wide, high];
    const pen = canvas.getContext("2d");
    if (isHatched) {
      pen.fillStyle = hatch(pen);
      pen.fillRect(0, 0, wide, high);
    }
    pen.drawImage(cells, 0, 0);
    return canvas;
  }

  const moments = (bin) => `${moment(data.from, offsets[bin], data.x.quantity)} to ${moment(data.from, offsets[bin + 1], data.x.quantity)}`;
  const which = (bin) => {
    if (!data.together) return `bin ${bin + 1} of ${bins}`;
    return `the least or the most of ${data.together} bins around`;
  };

  return {
    get zooms() { return rows.length > 12 ? "xy" : "x"; },
    refresh() { rows = places.filter((row) => ranks.has(row.rank)); },
    marks: () => rows.length * bins,
    tracks: () => (bins ? rows.length : 0),
    length: () => bins,
    height: (width) => Math.max(70, Math.min(rows.length * (isNarrow(width) ? 14 : 20), 620)) + 92,

    spot(track, bin) {
      const row = rows[track];
      const [from, to] = [edges[bin], edges[bin + 1]];
      return {
        lines: [row.label, `${data.value.name}: ${said(row.values[bin], data.value.quantity)}`, moments(bin), which(bin)],
        point: [(from + to) / 2, track],
        share: [((from + to) / 2 - first) / span, (track + 0.5) / rows.length],
      };
    },

    near([x, y]) {
      const track = Math.round(y);
      if (!rows[track] || x < first || x > last) return null;
      let [from, to] = [0, bins - 1];
      while (from < to) {
        const between = (from + to + 1) >> 1;
        if (edges[between] <= x) from = between;
        else to = between - 1;
      }
      return { track, mark: from };
    },

    option(width, view) {
      const { letters, left } = room(rows.map((row) => row.label), width);
      return {
        grid: { left, right: this.zooms.includes("y") && !isNarrow(width) ? 40 : 16, top: 10, bottom: 78 },
        xAxis: valueAxis(data.x, [first, last], {
          nameLocation: "middle", nameGap: 26, splitLine: { show: false },
          axisLabel: { formatter: (value) => fine(value, data.x.quantity, span) },
        }),
        yAxis: nameAxis(rows.map((row) => row.label), letters, view, this.height(width) - 88),
        dataZoom: zooms(this.zooms, width),
        series: [{
          type: "custom",
          clip: true,
          silent: true,
          data: rows.length && bins ? [[first, 0]] : [],
          renderItem: (box, api) => {
            const area = box.coordSys;
            const image = raster(area, (x) => api.coord([x, 0])[0], (row) => api.coord([0, row])[1], api.size([0, 1])[1]);
            return { type: "image", style: { image, x: area.x, y: area.y, width: area.width, height: area.height } };
          },
        }],
      };
    },

    legend() {
      const scale = element("i", { class: "scale" });
      scale.style.background = scaleGradient();
      const keys = [element("span", { class: "key" }, `${data.value.name}: ${short(low, data.value.quantity, high)}`, scale, short(high, data.value.quantity))];
      if (isHatched) keys.push(element("span", { class: "key" }, element("i", { class: "swatch hatched" }), NOT_MEASURED));
      if (rows.length > 500) keys.push(element("span", { class: "key" }, "more rows than lines of the screen: each shows what is farthest from the usual; zoom in to see all"));
      return keys;
    },
  };
};
