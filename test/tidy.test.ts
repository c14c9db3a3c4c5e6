import { globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseSync, Visitor } from 'rolldown/utils';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

const MAX_FILE_LINES = 400;
const MAX_FUNCTION_LINES = 70;

/** Files over the limit that read better in one piece, and why. */
const LONG_FILES: Readonly<Record<string, string>> = {
  'src/storage/migrations.ts': 'statements that were applied to databases and never change',
  'src/storage/tables.ts': 'the columns of all tables, as types',
};

/** Functions over the limit that read better in one piece, and why. */
const LONG_FUNCTIONS: Readonly<Record<string, string>> = {
  'daemon/daemon.ts runDaemon': 'starts and stops what the daemon consists of, in order',
  'src/base/charts/chart-series.ts prepareSeries': 'is embedded in the page as one function',
  'src/base/charts/chart-tools.ts prepareCharts': 'is embedded in the page as one function',
  'src/backtest/report/client/heat-map.ts drawHeatMap': 'draws one picture from top to bottom',
  'src/cli/verbs/backtest.ts run': 'the steps of a command, in order',
  'src/cli/verbs/backtest/robustness.ts run': 'the steps of a command, in order',
  'src/cli/verbs/backtest/sweep.ts run': 'the steps of a command, in order',
  'src/cli/verbs/backtest/walk-forward.ts run': 'the steps of a command, in order',
  'src/cli/verbs/daemon/status.ts run': 'the steps of a command, in order',
  'src/client/client.ts createClient': 'returns an object whose methods share its state',
  'src/deploy/cloud/aws-store.ts openAwsStore': 'returns an object whose methods share its state',
  'src/deploy/cloud/ecs.ts openEcs': 'returns an object whose methods share its state',
  'src/deploy/kubernetes/connect.ts connectCluster':
    'returns an object whose methods share its state',
  'src/deploy/kubernetes/connect.ts watchState': 'returns an object whose methods share its state',
  'src/deploy/kubernetes/manifests.ts deployment': 'one manifest, from top to bottom',
  'src/deploy/kubernetes/reflect.ts reflect': 'returns an object whose methods share its state',
  'src/deploy/kubernetes/rest.ts connectRest': 'returns an object whose methods share its state',
  'src/market/check-bars.ts checkBars':
    'one pass over columns, whose checks share the previous bar',
  'src/research/chat.ts answer': 'the rounds of one answer, which share its state',
  'src/research/chat.ts openChat': 'returns an object whose methods share its state',
  'src/research/language-model.ts answerWithModel':
    'the rounds of one answer, which share its state',
  'src/server/administrators.ts addAdministrators': 'registers routes, one after another',
  'src/server/bots.ts addBots': 'registers routes, one after another',
  'src/server/console/account.ts addAccountPages': 'registers routes, one after another',
  'src/server/console/client/connection.ts connection':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/equity-chart.ts equityChart':
    'returns an object whose methods share its state',
  'src/server/console/client/event-text.ts eventText':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/follow-range.ts followRange':
    'connects the parts of charts, which share its state',
  'src/server/console/client/halting.ts halting':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/live.ts live':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/palette.ts palette':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/passkeys.ts passkeys':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/client/session-charts.ts sessionCharts':
    'returns an object whose methods share its state',
  'src/server/console/client/session-prices.ts sessionPrices':
    'returns an object whose methods share its state',
  'src/server/console/client/toasts.ts toasts':
    'runs in the browser as one piece of text, so it cannot use helpers of its module',
  'src/server/console/license-customers.ts addCustomerPages': 'registers routes, one after another',
  'src/server/console/license-customers.ts show': 'one page, from top to bottom',
  'src/server/console/license.ts showInstallation': 'one page, from top to bottom',
  'src/server/console/pages.ts pagesOf': 'registers routes, one after another',
  'src/server/leases.ts addLeases': 'registers routes, one after another',
  'src/server/metrics.ts createMetrics': 'declares one metric after another',
  'src/server/registry.ts addRegistry': 'registers routes, one after another',
  'src/server/server.ts startServer': 'starts what a server consists of, in order',
  'src/server/storage-metrics.ts createStorageMetrics': 'declares one metric after another',
};

/**
 * Folders whose files are named after the resource that they present: `keys.ts` describes, serves,
 * renders, checks or prints what `identity/keys.ts` decides.
 */
const PRESENTATION = /^src\/(api|server|cli|doctor\/checks)\//;

/** File names that other folders share, and the one role that they have there. */
const SHARED_NAMES: Readonly<Record<string, string>> = {
  'api.ts': 'what a program imports from the package: the gate and the verification of leases',
  'device-proof.ts': 'the proof of a device, as the client makes it and as the issuer checks it',
  'enrollment.ts': 'the enrollment of a device, on the machine and at the issuer',
};

/** Turns of phrase that have no legitimate sense in this project. */
const PHRASES = [
  /\bwhoever\b/i,
  /\bnobody\b/i,
  /\banew\b/i,
  /\b(?:is|are|was|were|be|been) told\b/i,
  /\btold of\b/i,
  /\btells? of\b/i,
  /\bis none of\b/i,
  /\bis so already\b/i,
  /\bwhat (?:came|became|has become) of\b/i,
  /\blook(?:s|ed|ing)? after\b/i,
  /\bgone? on with\b/i,
  /\bthose who\b/i,
  /\bby whom\b/i,
  /\bso many\b/i,
];

/** Openings of a fragment in the middle of a thought. */
const FRAGMENT =
  /^(?:Of|That|So|Those|Who|Whose|Whatever|Has|Have|None of|Told|Asked|Handed|Kept)\b/;

/** Openings of a title that does not stand alone. */
const DEPENDENT_TITLE = /^(?:and|but|also|then|so|it|they|this|these|those|of|which|who|whose)\b/i;

const sources = list('{bin,daemon,src}/**/*.ts').filter((path) => !path.endsWith('.d.ts'));
const parsed = sources.map((path) => ({ path, ...parse(path) }));

test('src contains folders only', () => {
  const files = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((e) => e.isFile());
  expect(files.map(({ name }) => name)).toEqual(['tsconfig.json']);
});

test(`source files have at most ${MAX_FILE_LINES} lines, or a reason to have more`, () => {
  const long = sources.filter((path) => read(path).split('\n').length - 1 > MAX_FILE_LINES);
  expect(long.toSorted()).toEqual(Object.keys(LONG_FILES).toSorted());
});

test(`functions have at most ${MAX_FUNCTION_LINES} lines, or a reason to have more`, () => {
  const long = parsed.flatMap(({ path, text, program }) =>
    functions(program)
      .filter(({ start, end }) => lines(text.slice(start, end)) > MAX_FUNCTION_LINES)
      .map(({ name }) => `${path} ${name}`),
  );
  expect(long.toSorted()).toEqual(Object.keys(LONG_FUNCTIONS).toSorted());
});

test('functions are named after what they do', () => {
  const odd = parsed.flatMap(({ path, program }) =>
    functions(program)
      .filter(({ name }) => /^(?:lookAt|refused|said|shown|told)$/.test(name))
      .map(({ name }) => `${path} ${name}`),
  );
  expect(odd).toEqual([]);
});

test('files of different roles have different names', () => {
  const names = sources.filter((path) => !PRESENTATION.test(path)).map((path) => basename(path));
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  expect([...new Set(repeated)].toSorted()).toEqual(Object.keys(SHARED_NAMES).toSorted());
});

test('comments and messages use no private turns of phrase', () => {
  const odd = parsed.flatMap(({ path, text, comments, program }) => {
    const said = [...comments.map(prose), ...strings(program)];
    return said
      .filter(({ value }) => PHRASES.some((phrase) => phrase.test(value)))
      .map(({ start, value }) => `${path}:${lines(text.slice(0, start))} ${value}`);
  });
  expect(odd).toEqual([]);
});

test('comments do not begin in the middle of a thought', () => {
  const odd = parsed.flatMap(({ path, text, comments }) =>
    comments
      .map(prose)
      .filter(({ value }) => FRAGMENT.test(value))
      .map(({ start, value }) => `${path}:${lines(text.slice(0, start))} ${value}`),
  );
  expect(odd).toEqual([]);
});

test('documents use no private turns of phrase', () => {
  const documents = [...list('*.md'), ...list('docs/**/*.md'), ...list('examples/**/*.md')];
  const odd = documents.flatMap((path) =>
    read(path)
      .split('\n')
      .map((line, index) => `${path}:${index + 1} ${line}`)
      .filter((line) => PHRASES.some((phrase) => phrase.test(line))),
  );
  expect(documents.length).toBeGreaterThan(5);
  expect(odd).toEqual([]);
});

test('titles of tests stand alone', () => {
  const titles = list('test/**/*.test.ts').flatMap((path) =>
    [
      ...read(path).matchAll(
        /^\s*(?:it|test)(?:\.(?:concurrent|each|for|only|runIf|skip|skipIf)(?:\(.*?\))?)?\(\s*(['`"])(.+?)\1,/gm,
      ),
    ].map(([, , title]) => ({ path, title: title! })),
  );
  expect(titles.length).toBeGreaterThan(1000);
  const odd = titles
    .filter(({ title }) => !/\s/.test(title.trim()) || DEPENDENT_TITLE.test(title))
    .map(({ path, title }) => `${path} ${title}`);
  expect(odd).toEqual([]);
});

function list(pattern: string): string[] {
  const ignored = (path: string): boolean => /(?:^|\/)(?:node_modules|dist)(?:\/|$)/.test(path);
  return globSync(pattern, { cwd: root }).filter((path) => !ignored(path));
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function parse(path: string) {
  const text = read(path);
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  return { text, program, comments };
}

type Program = ReturnType<typeof parse>['program'];

/** 1 for a text without a line break. */
function lines(text: string): number {
  return text.split('\n').length;
}

/** Text of a comment, without its decoration and the code that it quotes. */
function prose({ start, value }: { readonly start: number; readonly value: string }) {
  return {
    start,
    value: value
      .replaceAll(/^[\s*]+/gm, ' ')
      .replaceAll(/`[^`]*`/g, '')
      .trim(),
  };
}

/** Functions and methods with a name. A callback counts as part of the function around it. */
function functions(program: Program) {
  const found: { name: string; start: number; end: number }[] = [];
  const names = new Map<unknown, string>();
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (init && id.type === 'Identifier') names.set(init, id.name);
    },
    MethodDefinition({ key, value }) {
      if ('name' in key && typeof key.name === 'string') names.set(value, key.name);
    },
    Property({ key, value }) {
      if ('name' in key && typeof key.name === 'string') names.set(value, key.name);
    },
    FunctionDeclaration(node) {
      add(node, node.id?.name);
    },
    FunctionExpression(node) {
      add(node);
    },
    ArrowFunctionExpression(node) {
      add(node);
    },
  }).visit(program);
  return found;

  function add(node: { start: number; end: number }, own?: string): void {
    const name = own ?? names.get(node);
    if (name !== undefined) found.push({ name, start: node.start, end: node.end });
  }
}

function strings(program: Program): { start: number; value: string }[] {
  const found: { start: number; value: string }[] = [];
  new Visitor({
    Literal({ start, value }) {
      // A single word is a value, not a message.
      if (typeof value === 'string' && /\s/.test(value)) found.push({ start, value });
    },
    TemplateElement({ start, value }) {
      found.push({ start, value: value.raw });
    },
  }).visit(program);
  return found;
}
