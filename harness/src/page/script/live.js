// The page of a run that goes on: it is loaded again where it has changed, with what was open in it still open.

const live = document.getElementById("live");
const OPEN = "harness-open";
try {
  for (const id of JSON.parse(sessionStorage.getItem(OPEN) || "[]")) {
    const one = document.getElementById(id);
    if (one && one.tagName === "DETAILS") one.open = true;
  }
} catch {
  // Without a store everything is closed.
}

async function look() {
  let answer;
  try {
    answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
  } catch {
    live.textContent = "Not followed any more: harness watch has ended. This is the last page that it had.";
    return;
  }
  const revision = answer.headers.get("ETag");
  if (answer.ok && revision && revision !== `"${document.documentElement.dataset.revision}"`) {
    const open = [...document.querySelectorAll("details[open][id]")].map((one) => one.id);
    try {
      sessionStorage.setItem(OPEN, JSON.stringify(open));
    } catch {
      // Then they are closed.
    }
    location.reload();
    return;
  }
  setTimeout(look, 2000);
}
setTimeout(look, 1000);
