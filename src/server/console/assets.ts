import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { prepareSeries } from '../../base/charts/chart-series.ts';
import { CHART_COLORS, CHART_CSS } from '../../base/charts/chart-style.ts';
import { prepareCharts } from '../../base/charts/chart-tools.ts';
import { drawLegend } from '../../base/charts/indicator-legend.ts';
import { addIndicatorLines, addVolumeBars, styleLines } from '../../base/charts/indicator-lines.ts';
import { addPriceBars } from '../../base/charts/price-bars.ts';
import { addTooltip } from '../../base/charts/tooltip.ts';
import { linesOf, serverSentEvents } from '../../client/server-sent-events.ts';
import { announce } from './client/announce.ts';
import { askQuestion, chat, refreshChat, showSource } from './client/chat.ts';
import { connection } from './client/connection.ts';
import { describeLimits } from './client/describe-limits.ts';
import { describeSession } from './client/describe-session.ts';
import { equityChart } from './client/equity-chart.ts';
import { eventText } from './client/event-text.ts';
import { addFillMarks } from './client/fill-marks.ts';
import { followRange } from './client/follow-range.ts';
import { followBot } from './client/follow.ts';
import { forms } from './client/forms.ts';
import { halting } from './client/halting.ts';
import { live } from './client/live.ts';
import { liveTrades } from './client/live-trades.ts';
import { overview } from './client/overview.ts';
import { palette } from './client/palette.ts';
import { logRows } from './client/log-rows.ts';
import { orderMarks } from './client/order-marks.ts';
import { sessionCharts } from './client/session-charts.ts';
import { sessionCurve } from './client/session-curve.ts';
import { sessionPrices } from './client/session-prices.ts';
import { setRows } from './client/set-rows.ts';
import { keepTyped } from './client/keep-typed.ts';
import { lease } from './client/lease.ts';
import { showError, passkeys, post } from './client/passkeys.ts';
import { progressText } from './client/progress-text.ts';
import { replacePart } from './client/replace.ts';
import { showQuestion } from './client/show-question.ts';
import { chunksOf, streamAnswer } from './client/stream-answer.ts';
import { task, tasks } from './client/tasks.ts';
import { theme } from './client/theme.ts';
import { toasts } from './client/toasts.ts';
import { timeline } from './client/timeline.ts';
import { STYLE } from './style.ts';
import { STYLE_OF_ASSESSMENT } from './style-assessment.ts';
import { STYLE_OF_BOTS } from './style-bots.ts';
import { STYLE_OF_CHAT } from './style-chat.ts';
import { STYLE_OF_EDITOR } from './style-editor.ts';

/**
 * A static file of the console. Its URL contains a hash of the content, so browsers may cache it
 * forever.
 */
export interface Asset {
  readonly type: string;
  readonly body: string;
  /** Path on the server, such as `/console/assets/<hash>/style.css`. */
  readonly url: string;
}

export const ASSETS_PATH = '/console/assets/';

const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Assets by URL. Loading this module adds all of them. */
const assets = new Map<string, Asset>();

export function assetAt(url: string): Asset | undefined {
  return assets.get(url);
}

function asset(name: string, type: string, body: string): Asset {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
  const made = { type, body, url: `${ASSETS_PATH}${hash}/${name}` };
  assets.set(made.url, made);
  return made;
}

/**
 * Builds a script from functions of `client/` that calls the last one. It contains their source
 * text, so each function may refer only to types, globals of the browser, and functions listed
 * before it. A part that is a text is a statement.
 */
function script(name: string, ...parts: readonly (ClientFunction | string)[]): Asset {
  const source = parts.map((one) => one.toString()).join('\n');
  const { name: main } = parts.at(-1) as ClientFunction;
  return asset(`${name}.js`, JAVASCRIPT, `'use strict';\n(() => {\n${source}\n${main}();\n})();\n`);
}

type ClientFunction = (...args: never[]) => unknown;

/**
 * Serves a file of an npm package.
 * @param path in the package, such as `dist/bundle/index.umd.min.js`.
 * @param exported specifier that `require` resolves, for a package without a main export.
 */
function vendorScript(
  name: string,
  packageName: string,
  path: string,
  exported = packageName,
): Asset {
  const entry = createRequire(import.meta.url).resolve(exported);
  const root = entry.slice(0, entry.lastIndexOf(packageName) + packageName.length);
  return asset(`${name}.js`, JAVASCRIPT, readFileSync(join(root, path), 'utf8'));
}

export const STYLE_SHEET = asset(
  'style.css',
  'text/css; charset=utf-8',
  `:root {${CHART_COLORS}}\n${CHART_CSS}\n${STYLE}${STYLE_OF_BOTS}${STYLE_OF_CHAT}${STYLE_OF_EDITOR}${STYLE_OF_ASSESSMENT}`,
);
export const THEME = script('theme', theme);
export const FORMS = script('forms', announce, forms);
export const KEEP_TYPED = script('keep-typed', keepTyped);
export const PALETTE = script('palette', palette);
export const TOASTS = script('toasts', announce, toasts);
export const OVERVIEW = script('overview', replacePart, overview);
export const CONNECTION = script('connection', announce, connection);
export const WEBAUTHN = vendorScript(
  'webauthn',
  '@simplewebauthn/browser',
  'dist/bundle/index.umd.min.js',
);
export const LEASE = script('lease', announce, lease);
export const PASSKEYS = script('passkeys', post, showError, passkeys);

export const CHARTS = vendorScript(
  'charts',
  'lightweight-charts',
  'dist/lightweight-charts.standalone.production.js',
  'lightweight-charts/package.json',
);
export const LIVE = script(
  'live',
  announce,
  eventText,
  describeSession,
  describeLimits,
  followBot,
  replacePart,
  setRows,
  prepareSeries,
  'const chartSeries = prepareSeries();',
  prepareCharts,
  "const chartTools = prepareCharts({ dateOnly: 'daily' in document.querySelector('#now').dataset });",
  addPriceBars,
  addTooltip,
  styleLines,
  addVolumeBars,
  addIndicatorLines,
  drawLegend,
  addFillMarks,
  orderMarks,
  sessionCurve,
  sessionPrices,
  equityChart,
  followRange,
  sessionCharts,
  liveTrades,
  logRows,
  live,
);
export const LIVE_TRADES = script('live-trades', replacePart, liveTrades);
export const TIMELINE = script('timeline', announce, replacePart, timeline);
export const HALTING = script('halting', announce, replacePart, halting);
export const TASKS = script('tasks', replacePart, tasks);
export const TASK = script('task', announce, replacePart, progressText, task);

export const CHAT = script(
  'chat',
  announce,
  linesOf,
  serverSentEvents,
  chunksOf,
  streamAnswer,
  showQuestion,
  refreshChat,
  askQuestion,
  showSource,
  chat,
);

/** Bundle of `editor/`, which `npm run prepare` builds, also for a server that runs from its sources. */
const EDITOR_BUNDLE = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/src/server/console/editor.js' : './editor.js',
  import.meta.url,
);
/** Undefined if the bundle is missing; the pages then have plain text areas. */
export const EDITOR = existsSync(EDITOR_BUNDLE)
  ? asset('editor.js', JAVASCRIPT, readFileSync(EDITOR_BUNDLE, 'utf8'))
  : undefined;

export const ICON = asset(
  'icon.svg',
  'image/svg+xml',
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#2458b3"/><path d="M3 11l3.5-4 2.5 2.5L13 5" fill="none" stroke="#fff" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round"/></svg>',
);
