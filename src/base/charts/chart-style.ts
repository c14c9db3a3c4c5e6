/** Colors of indicator lines for the light and the dark scheme. The contrast to the background is at least 4.5 to 1. */
const LINES = [
  ['#9d174d', '#f9a8d4'],
  ['#b45309', '#fbbf24'],
  ['#6d28d9', '#c4b5fd'],
  ['#0e7490', '#67e8f9'],
  ['#be185d', '#fb7185'],
  ['#4d7c0f', '#bef264'],
  ['#92400e', '#fdba74'],
  ['#475569', '#cbd5e1'],
] as const;

/** Colors of charts for `:root`. */
export const CHART_COLORS = `  --label: light-dark(#3d4553, #4a5361);
  --equity: light-dark(#2458b3, #86b0ff);
  --equity-fill: light-dark(#2458b333, #86b0ff33);
  --equity-fade: light-dark(#2458b305, #86b0ff05);
  --benchmark: light-dark(#8a7440, #c7b078);
  --gain: light-dark(#0b7457, #4fc3a1);
  --loss: light-dark(#b23a1e, #ff9478);
  --loss-fill: light-dark(#b23a1e40, #ff947840);
  --loss-fade: light-dark(#b23a1e0a, #ff94780a);
  --warning: light-dark(#8a5a00, #e5b455);
  --volume: light-dark(#a9b2c0, #4b5565);
${LINES.map(([light, dark], index) => `  --line-${index}: light-dark(${light}, ${dark});\n  --line-${index}-fill: light-dark(${light}1f, ${dark}1f);`).join('\n')}
`;

/** Styles of the parts of a chart. */
export const CHART_CSS = `${LINES.map((_, index) => `.line-${index} { color: var(--line-${index}); }`).join('\n')}
.range { display: flex; gap: 0.25rem; }
.range button { min-width: 2rem; padding: 0.25rem 0.5rem; }
.readings { display: flex; flex-wrap: wrap; gap: 0 1.25rem; min-height: 1.5rem; font-size: 0.875rem; color: var(--muted); }
.readings b { font-weight: 550; color: var(--ink); }
.tooltip { position: absolute; top: 0.5rem; z-index: 5; pointer-events: none; padding: 0.25rem 0.625rem; border-radius: 6px; background: var(--ink); color: var(--paper); font-size: 0.8125rem; white-space: nowrap; }
.indicators { display: flex; flex-wrap: wrap; gap: 0.375rem; margin-bottom: 0.5rem; }
.indicators button { display: inline-flex; flex-wrap: wrap; align-items: center; gap: 0.125rem 0.5rem; min-height: 1.75rem; padding: 0.125rem 0.625rem; font-size: 0.8125rem; text-align: left; }
.indicators button span, .indicators small { color: var(--muted); font-size: inherit; }
.indicators b { font-weight: 600; }
.indicators svg { width: 1.5rem; height: 0.5rem; stroke: currentColor; stroke-width: 2; }
.indicators [aria-pressed='false'] { border-style: dashed; background: none; }
.indicators [aria-pressed='false'] :is(b, span) { text-decoration: line-through; }
.indicators [aria-pressed='false'] :is(svg, output, small) { display: none; }
`;
