/** Light or dark: as the system has it, unless a person chose the other. Only then is anything remembered. */

export type Theme = "light" | "dark";

/** What to show. A choice that is no theme is none. */
export function themeOf(remembered: string | null, systemIsDark: boolean): Theme {
  if (remembered === "light" || remembered === "dark") return remembered;
  return systemIsDark ? "dark" : "light";
}

/** What to remember after `theme` was chosen: null forgets, and the page follows the system again. */
export function toRemember(theme: Theme, systemIsDark: boolean): Theme | null {
  return theme === (systemIsDark ? "dark" : "light") ? null : theme;
}
