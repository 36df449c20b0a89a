/** The theme on show, kept with the system's and with what was remembered. */

import { themeOf, toRemember, type Theme } from "../lib/theme";

const KEY = "limelight.theme";

export class ThemeState {
  theme = $state<Theme>("light");
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  constructor() {
    this.apply();
    this.system.addEventListener("change", () => this.apply());
  }

  toggle(): void {
    const theme = this.theme === "dark" ? "light" : "dark";
    const kept = toRemember(theme, this.system.matches);
    try {
      if (kept) localStorage.setItem(KEY, kept);
      else localStorage.removeItem(KEY);
    } catch {
      // Storage may be off; the choice then lasts as long as the page.
    }
    this.show(theme);
  }

  private apply(): void {
    this.show(themeOf(remembered(), this.system.matches));
  }

  /** Until the page is left; nothing is remembered. */
  show(theme: Theme): void {
    this.theme = theme;
    document.documentElement.dataset["theme"] = theme;
  }
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
