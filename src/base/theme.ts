/** Fonts and colors of reports and console pages, for `:root`: light and dark variants of each. */
export const THEME_CSS = `
  color-scheme: light dark;
  --paper: light-dark(#ffffff, #14171c);
  --panel: light-dark(#f6f7f9, #1c2027);
  --ink: light-dark(#1a1d23, #e7e9ed);
  --muted: light-dark(#596170, #a2a9b6);
  --rule: light-dark(#e1e4e9, #2e343d);
  font: 100%/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif;
  font-variant-numeric: tabular-nums;
  -webkit-text-size-adjust: 100%;
`;
