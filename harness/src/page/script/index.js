// An index: its entries by what is typed, and its colours.

theme.start();
const typed = document.getElementById("filter");
const matches = document.getElementById("filtered");
const entries = [...document.querySelectorAll(".pages > li")];
typed.addEventListener("input", () => {
  const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of entries) {
    const text = entry.textContent.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
    if (!entry.hidden) shown += 1;
  }
  matches.textContent = words.length ? `${shown} of ${entries.length}` : "";
});
document.documentElement.dataset.ready = "true";
