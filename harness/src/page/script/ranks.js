// Which ranks are looked at, in all charts and tables together: typed as `0-7,12`, or by host.

const ranks = {
  known: [],
  hosts: new Map(),
  chosen: null,
  listeners: [],

  // Nothing is left out where a mark is of no rank.
  has(rank) {
    return rank === null || rank === undefined || this.chosen === null || this.chosen.has(rank);
  },

  // The ranks, or what cannot be understood.
  read(text) {
    const chosen = new Set();
    const wrong = [];
    const there = new Set(this.known);
    for (const word of text.split(/[\s,]+/).filter(Boolean)) {
      const span = /^(\d+)(?:-(\d+))?$/.exec(word);
      if (word.toLowerCase() === "all") this.known.forEach((rank) => chosen.add(rank));
      else if (this.hosts.has(word)) this.hosts.get(word).forEach((rank) => chosen.add(rank));
      else if (span) {
        const [first, last] = [Number(span[1]), Number(span[2] ?? span[1])];
        const inside = this.known.filter((rank) => rank >= first && rank <= last);
        if (inside.length === 0 || !there.has(first) && span[2] === undefined) wrong.push(word);
        inside.forEach((rank) => chosen.add(rank));
      } else wrong.push(word);
    }
    return { chosen, wrong };
  },

  // As it would be typed.
  written(chosen) {
    const words = [];
    const all = this.known;
    for (let at = 0; at < all.length; at += 1) {
      if (!chosen.has(all[at])) continue;
      let end = at;
      while (end + 1 < all.length && chosen.has(all[end + 1])) end += 1;
      words.push(end === at ? `${all[at]}` : `${all[at]}-${all[end]}`);
      at = end;
    }
    return words.join(",");
  },

  start(place, known, reports) {
    this.known = [...known].sort((a, b) => a - b);
    if (this.known.length < 2) return;
    for (const { rank, host } of reports) {
      if (rank === null || !host || !known.has(rank)) continue;
      if (!this.hosts.has(host)) this.hosts.set(host, []);
      this.hosts.get(host).push(rank);
    }
    const status = element("span", { id: "ranks-status", role: "status" });
    const input = element("input", { id: "ranks-input", type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": "ranks-status" });
    const choose = (chosen, wrong = []) => {
      this.chosen = chosen.size === this.known.length ? null : chosen;
      const count = `${chosen.size} of ${counted(this.known.length, "rank", "ranks")}`;
      status.textContent = wrong.length ? `${count}; not there: ${wrong.join(", ")}` : count;
      input.setAttribute("aria-invalid", wrong.length > 0);
      for (const listener of this.listeners) listener();
    };
    const set = (chosen) => {
      input.value = this.written(chosen);
      choose(chosen);
    };
    input.addEventListener("input", () => {
      const { chosen, wrong } = this.read(input.value);
      choose(chosen, wrong);
    });
    const all = () => set(new Set(this.known));
    const bar = element("div", { class: "tools" },
      element("label", { for: "ranks-input" }, "Ranks"), input,
      button("All", "all ranks", all), button("None", "no rank", () => set(new Set())));
    if (this.hosts.size > 1) {
      const names = [...this.hosts.keys()].sort(new Intl.Collator("en", { numeric: true }).compare);
      const options = names.map((name) => element("option", { value: name }, `${name} (${this.written(new Set(this.hosts.get(name)))})`));
      const select = element("select", { id: "ranks-host", "aria-label": "only the ranks of one host" },
        element("option", { value: "" }, "of any host"), ...options);
      select.addEventListener("change", () => (select.value ? set(new Set(this.hosts.get(select.value))) : all()));
      bar.append(select);
    }
    bar.append(status);
    place.append(bar);
    input.value = this.written(new Set(this.known));
    status.textContent = counted(this.known.length, "rank", "ranks");
  },
};
