// Light and dark: as the machine has it, until a person says otherwise; paper is light.

const theme = {
  asked: null,
  printing: false,
  listeners: [],
  system: window.matchMedia("(prefers-color-scheme: dark)"),

  isDark() {
    if (this.printing) return false;
    return this.asked === null ? this.system.matches : this.asked === "dark";
  },

  show() {
    document.documentElement.dataset.theme = this.isDark() ? "dark" : "light";
    const toggle = document.getElementById("theme");
    toggle.textContent = this.isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", this.isDark() ? "light colours" : "dark colours");
    for (const listener of this.listeners) listener();
  },

  start() {
    document.getElementById("theme").addEventListener("click", () => {
      this.asked = this.isDark() ? "light" : "dark";
      this.show();
    });
    this.system.addEventListener("change", () => this.show());
    this.show();
  },

  // The colours that the style has, for what is drawn.
  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  },
};
