// Numbers: out of the page's data, and as a person reads them. What was not measured is null, and says so.

const NOT_MEASURED = "not measured";

function unpacked(text, length) {
  if (length === 0) return [];
  return text.split(",").map((digits) => (digits === "" ? null : Number(digits)));
}

// Of steps from one number to the next.
function summed(text, length) {
  let sum = 0;
  return unpacked(text, length).map((step) => (sum += step));
}

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const ROUNDED = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

const SCALES = {
  nanoseconds: [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]],
  bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  bytes_per_second: [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]],
};

function whole(value) {
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential(2);
  return GROUPED.format(value);
}

// In the unit in which it is short; what is short enough for an axis. With `like`, in the unit of that number.
function short(value, quantity, like = value) {
  if (value === null) return NOT_MEASURED;
  if (quantity === "percent") return `${ROUNDED.format(value)} %`;
  const scales = SCALES[quantity];
  if (!scales) return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4 ? compact(value) : ROUNDED.format(value);
  const size = Math.abs(like);
  const [one, unit] = scales.find(([one]) => size >= one) ?? scales[scales.length - 1];
  return `${ROUNDED.format(value / one)} ${unit}`;
}

// On an axis of which only a part far from zero is seen: as many digits as keep its places apart.
function fine(value, quantity, span) {
  const [one, unit] = SCALES[quantity]?.find(([one]) => Math.abs(value) >= one) ?? SCALES[quantity]?.at(-1) ?? [1, ""];
  const places = Math.max(0, Math.min(9, Math.ceil(1 - Math.log10(span / one || 1))));
  return `${value === 0 ? 0 : (value / one).toLocaleString("en-US", { maximumFractionDigits: places })} ${unit}`.trim();
}

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });

function compact(value) {
  return value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential(1) : COMPACT.format(value);
}

// The exact number, and beside it the short one where that reads better.
function said(value, quantity) {
  if (value === null) return NOT_MEASURED;
  if (quantity === "percent") return `${whole(value)} %`;
  const scales = SCALES[quantity];
  if (!scales) return whole(value);
  const exact = `${whole(value)} ${scales[scales.length - 1][1]}`;
  return Math.abs(value) >= 1000 ? `${short(value, quantity)} (${exact})` : exact;
}

// Nanoseconds behind a moment that may be too large for a script's numbers.
function moment(from, offset, quantity) {
  const base = BigInt(from);
  if (base === 0n || !Number.isInteger(offset)) return said(Number(base) + offset, quantity);
  const exact = base + BigInt(offset);
  if (exact <= BigInt(Number.MAX_SAFE_INTEGER)) return said(Number(exact), quantity);
  const unit = SCALES[quantity] ? ` ${SCALES[quantity].at(-1)[1]}` : "";
  return `${short(offset, quantity)} behind the first (${exact.toLocaleString("en-US")}${unit})`;
}

// Digits of a table, with commas between thousands.
function grouped(digits) {
  const [, sign, before, behind] = /^(-?)(\d*)(.*)$/.exec(digits);
  return sign + before.replace(/\B(?=(\d{3})+$)/g, ",") + behind;
}

function counted(count, one, many) {
  return `${GROUPED.format(count)} ${count === 1 ? one : many}`;
}
