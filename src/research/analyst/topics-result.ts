import { formatCountOf, formatNumber } from '../../base/format.ts';
import type { Citation } from '../answering.ts';
import { HEADLINES } from './answer-figure.ts';
import { cite, citeFields, day, quoted, runOf, step, type Run } from './facts.ts';
import { reply, type Reply } from './reply.ts';
import type { Topic, TopicPart } from './topics.ts';

export function stateCited({ figure, value }: Citation): string {
  return `- ${figure}: ${typeof value === 'string' ? quoted(value) : value}`;
}

const ofRun = (
  id: string,
  example: string,
  about: string,
  keys: readonly string[],
  answer: (run: Run) => Reply,
): Topic => ({
  id,
  example,
  about,
  keys,
  names: 1,
  answer: async (facts) => answer(await runOf(facts)),
});

/** Figures that stand at places of a result, one per line. */
const fields = (
  id: string,
  example: string,
  about: string,
  keys: readonly string[],
  head: string,
  places: (run: Run) => readonly string[],
): Topic =>
  ofRun(id, example, about, keys, (run) => {
    const citations = places(run).map((place) => cite(run.result, place));
    return reply([`${head} in ${run.said}:`, ...citations.map(stateCited)], citations);
  });

const CONVENTIONS = [
  'sampling',
  'periods_per_year',
  'year_days',
  'risk_free',
  'ddof',
  'return_kind',
  'downside',
  'trades',
];

function gates({ result, said }: Run): Reply {
  const all = result.data.gates;
  if (all.length === 0)
    return reply(`The spec has no gates (\`metrics\`), in ${said}.`, cite(result, '/gates'));
  const lines = all.map(
    ({ name, op, threshold, value, pass }) =>
      `- ${name} ${op} ${threshold}: ${value === null ? 'undefined' : formatNumber(value)}, ${pass ? 'passed' : 'failed'}`,
  );
  const passed = all.filter(({ pass }) => pass).length;
  return reply(
    [`${passed} of ${all.length} gates passed, in ${said}:`, ...lines],
    all.flatMap(({ name }, i) =>
      ['value', 'threshold', 'pass'].map((part) =>
        cite(result, `/gates/${i}/${part}`, `gate ${name} ${part}`),
      ),
    ),
  );
}

/** Findings about missing or stale data. */
const DATA_FINDINGS = [
  'missing_bars',
  'stale_bars',
  'outside_sessions',
  'data_end_early',
  'data_start_late',
];

function findings(
  { result, said }: Run,
  codes: readonly string[] | undefined,
  none: string,
): Reply {
  const all = result.data.findings
    .map((finding, i) => ({ ...finding, i }))
    .filter(({ code }) => codes === undefined || codes.includes(code));
  if (all.length === 0)
    return reply(`${none}, in ${said}.`, cite(result, '/findings', 'findings of all kinds'));
  const lines = all.map(({ code, severity, issue }) => `- ${code} (${severity}): ${issue}`);
  return reply(
    [`${formatCountOf(all.length, 'finding')}, in ${said}:`, ...lines],
    all.map(({ i, code }) => cite(result, `/findings/${i}/issue`, code)),
  );
}

function refusals({ result, said }: Run): Reply {
  const { orders } = result.data;
  const rejected = cite(result, '/orders/rejected');
  const denied = cite(result, '/orders/denied');
  const all = orders.refused === undefined ? [] : [cite(result, '/orders/refused')];
  const by = Object.keys(orders.reasons)
    .slice(0, 40)
    .map((reason) => cite(result, `/orders/reasons/${step(reason)}`, reason));
  const total = all
    .map(({ value }) => `, in all with those that a limit canceled: ${value}`)
    .join('');
  const text = `Orders rejected: ${rejected.value}, denied: ${denied.value}${total}, in ${said}.`;
  return reply([text, ...by.map(stateCited)], [rejected, denied, ...all, ...by]);
}

export const RESULT_TOPICS: TopicPart = {
  title: 'The run itself',
  topics: [
    ofRun(
      'window',
      'Which days did the run see?',
      'first and last bar, and their number',
      [
        'which|what day|period|window',
        'many bar',
        'first|last bar',
        'which|between date',
        'date run|backtest',
        'backtest|test period|window',
        'window',
      ],
      ({ result, said }) => {
        const { from, to, bars } = result.data.window;
        return reply(
          `${formatCountOf(bars, 'bar')} from ${day(from)} to ${day(to)}, in ${said}.`,
          citeFields(result, '/window', ['from', 'to', 'bars']),
        );
      },
    ),
    fields(
      'conventions',
      'By which conventions are the figures computed?',
      'sampling, periods per year and others',
      [
        'convention',
        'how figure|statistic compute|calculate|work',
        'period per year',
        'many period per year assume',
        'risk free',
      ],
      'Conventions',
      () => CONVENTIONS.map((name) => `/conventions/${name}`),
    ),
    ofRun(
      'gates',
      'Did it pass its gates?',
      'each gate with its value',
      ['gate', 'pass|fail gate|criteria|criterion'],
      gates,
    ),
    ofRun(
      'findings',
      'What should I doubt about the result?',
      'findings about the run',
      [
        'finding',
        'doubt|distrust|suspicious',
        'doubt|distrust result|run|backtest',
        'warning',
        'wrong|problem result|run|backtest',
      ],
      (run) => findings(run, undefined, 'No findings'),
    ),
    ofRun(
      'gaps',
      'Are there gaps in the data?',
      'findings about missing or stale bars',
      ['gap', 'missing|stale bar|data', 'gap data', 'data complete|missing|stale', 'data quality'],
      (run) => findings(run, DATA_FINDINGS, 'No missing or stale bars were found'),
    ),
    ofRun(
      'refusals',
      'How many orders were rejected or denied, and why?',
      'counts by reason',
      [
        'order rejected|reject|denied|refused',
        'rejected|reject|rejection',
        'denied|denial|deny',
        'denied|denial|rejected|refused code|reason|why',
      ],
      refusals,
    ),
    fields(
      'hashes',
      'What are the hashes of the result?',
      'SHA-256 of events, trades and equity',
      ['hash|sha256|checksum', 'hash result|event|trade|equity', 'hash file'],
      'SHA-256',
      () => ['/hashes/events', '/hashes/trades', '/hashes/equity'],
    ),
    fields(
      'lock',
      'What decides the result?',
      'the lock: spec, engine, strategy, data and seed',
      [
        'lock',
        'decide result',
        'reproduce|reproducible',
        'reproduce|reproducible result',
        'seed',
        'engine version',
      ],
      'Equal locks give equal events. Lock',
      ({ result }) => [
        ...['digest', 'spec', 'engine', 'seed', 'strategy'].map((name) => `/lock/${name}`),
        ...Object.keys(result.data.lock.data)
          .slice(0, 20)
          .map((symbol) => `/lock/data/${step(symbol)}`),
      ],
    ),
  ],
};

export const SHORT_HEADLINES = HEADLINES.slice(0, 5);
