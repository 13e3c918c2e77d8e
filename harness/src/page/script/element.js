// Elements whose words are only ever words: nothing that came out of a report is read as markup.

function element(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.filter((part) => part !== null));
  return made;
}

function button(text, name, act) {
  return element("button", { type: "button", "aria-label": name, title: name, click: act }, text);
}

// Once in the next frame, however often it is asked for until then.
function inFrame(act) {
  let asked = 0;
  return () => {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; act(); });
  };
}
