// Colours that keep numbers and lines apart for people who see few of them, on light and on dark.

// From low to high, each step as great to the eye as the next; the stops of viridis.
const STOPS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
const STEPS = 256;

const SCALE = (() => {
  const stops = STOPS.map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: STEPS }, (_, step) => {
    const place = (step / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return stops[low].map((from, part) => Math.round(from + (stops[low + 1][part] - from) * (place - low)));
  });
})();

function scaleColour(share) {
  const step = Math.round(Math.max(0, Math.min(1, share)) * (STEPS - 1));
  return `rgb(${SCALE[step].join(",")})`;
}

function scaleGradient() {
  return `linear-gradient(to right, ${STOPS.map((hex) => `#${hex}`).join(",")})`;
}

// Few lines have colours of their own, many the scale by their place, so that neighbours look alike.
const OWN = {
  light: ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#3f3f3f", "#56b4e9", "#882255"],
  dark: ["#56b4e9", "#ffa14a", "#2fd6a5", "#e58fd0", "#f0e442", "#d0d0d0", "#88ccee", "#ff7f9e"],
};

function lineColour(place, count) {
  const own = theme.isDark() ? OWN.dark : OWN.light;
  if (count <= own.length) return own[place];
  const share = count > 1 ? place / (count - 1) : 0;
  return scaleColour(theme.isDark() ? 0.25 + 0.75 * share : 0.85 * share);
}

// How what was not measured looks.
function hatch(context) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.fillStyle = theme.colour("hatch-paper");
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = theme.colour("hatch-ink");
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const from of [-8, 0, 8]) {
    pen.moveTo(from, 8);
    pen.lineTo(from + 8, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
