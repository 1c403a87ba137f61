/** Light or dark: the system's choice until somebody chooses here. Knows one attribute and one stored word. */

export type Theme = "auto" | "light" | "dark";

const STORED = "rootstock.theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : "auto";
}

/** Charts read their colours when they are drawn: they listen for this event. */
export const THEME_CHANGED = "rootstock-theme";

function show(): void {
  const theme = chosenTheme();
  document.documentElement.dataset.theme = theme === "auto" ? (prefersDark.matches ? "dark" : "light") : theme;
  dispatchEvent(new Event(THEME_CHANGED));
}

export function chooseTheme(theme: Theme): void {
  if (theme === "auto") localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, theme);
  show();
}

export function startTheme(): void {
  prefersDark.addEventListener("change", show);
  show();
}
