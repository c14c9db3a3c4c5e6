import { at } from '../call-api.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Citation } from '../answering.ts';
import {
  botOf,
  cite,
  otherValues,
  quoted,
  runOf,
  step,
  tasksOf,
  type Bot,
  type Facts,
  type Source,
} from './facts.ts';
import { reply, type KnownQuestion, type Questions, type Reply } from './question.ts';
import { sayCited } from './results.ts';

/** Of a map or a list, so many are told. */
const MOST = 30;

/** All that stands at places of the spec, as its author wrote it. */
function ofSpec(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  places: (bot: Bot) => readonly string[],
  none: string,
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    async answer(facts) {
      const bot = await botOf(facts);
      const citations = places(bot.data)
        .slice(0, MOST)
        .map((place) => citeDocument(bot, place));
      const stated = citations.filter(({ value }) => value !== null);
      if (stated.length === 0) return reply(none, citations);
      return reply(['By the spec of the current version:', ...stated.map(sayCited)], stated);
    },
  };
}

function citeDocument(bot: Source<Bot>, place: string): Citation {
  return cite(bot, `/document${place}`, place.replace(/^\/(spec\/)?/, '').replaceAll('/', '.'));
}

function placesOf(value: object | undefined, place: string): readonly string[] {
  return Object.keys(value ?? {}).map((name) => `${place}/${step(name)}`);
}

/** A map within a map is told by its parts. */
function leaves(value: unknown, place: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [place];
  return Object.entries(value).flatMap(([name, part]) => leaves(part, `${place}/${step(name)}`));
}

interface Dataset {
  readonly name: string;
  readonly timeframe: string;
  readonly bars: number;
  readonly from: string;
  readonly to: string;
}

async function datasets(facts: Facts): Promise<Reply> {
  const { source, sources } = (await botOf(facts)).data.document.spec.data;
  const named = Object.values(sources ?? { source }).map((address) =>
    String(address).replace(/^catalog:\/\//, ''),
  );
  const shown = [...new Set(named)].slice(0, 8);
  const found = await Promise.all(
    shown.map((name) => facts.get<Dataset>(at`/data/datasets/${name}`)),
  );
  const lines = found.map(
    ({ data: { name, timeframe, bars, from, to } }) =>
      `- ${quoted(name)}: ${formatCountOf(bars, 'bar')} of ${timeframe}, ${from} to ${to}`,
  );
  const citations = found.flatMap((dataset) =>
    ['bars', 'timeframe', 'from', 'to'].map((name) =>
      cite(dataset, `/${name}`, `${dataset.data.name} ${name}`),
    ),
  );
  const more = named.length > shown.length ? [`- and ${named.length - shown.length} more`] : [];
  return reply(['In the catalogue of the server:', ...lines, ...more], citations);
}

/** Findings of a run that are about its data. */
const DATA_FINDINGS = new Set([
  'missing_bars',
  'stale_bars',
  'outside_sessions',
  'data_end_early',
  'data_start_late',
]);

async function gaps(facts: Facts): Promise<Reply> {
  const run = await runOf(facts);
  const found = [...run.result.data.findings.entries()].filter(([, { code }]) =>
    DATA_FINDINGS.has(code),
  );
  if (found.length === 0) {
    const text = `No missing or stale bars were found, in ${run.said}.`;
    return reply(
      text,
      cite(run.result, '/findings', 'findings of all kinds'),
      cite(run.result, '/window/bars'),
    );
  }
  return reply(
    [`In ${run.said}:`, ...found.map(([, { code, issue }]) => `- ${code}: ${issue}`)],
    found.map(([i, { code }]) => cite(run.result, `/findings/${i}/issue`, code)),
  );
}

/** The newest run may have had others, as of a proposal. */
async function withNewestValues(facts: Facts, { answer }: KnownQuestion): Promise<Reply> {
  const { text, citations } = await answer(facts);
  const [newest] = (await tasksOf(facts, { status: 'success', kind: 'backtest,paper', limit: 1 }))
    .data.items;
  const others = newest === undefined ? undefined : otherValues(newest);
  if (others === undefined) return reply(text, citations);
  return reply(
    [text, `The newest run, ${newest!.task_id}, had other values: ${others}.`],
    citations,
  );
}

export const SPEC_QUESTIONS: Questions = {
  title: 'What the current version is made of',
  questions: [
    ofSpec(
      'about',
      'What is this bot?',
      'its name, kind, owner and description',
      [
        'what is bot',
        'what|which bot',
        'who owner|owns|own',
        'owner',
        'describe|description',
        'name bot',
      ],
      () => [
        '/metadata/name',
        '/metadata/slug',
        '/spec/kind',
        '/metadata/owner',
        '/metadata/description',
      ],
      'It has no name.',
    ),
    ...[
      ofSpec(
        'parameters',
        'What are the parameters of the strategy?',
        'each, where the spec states it',
        ['parameter|param|params', 'parameter|param strategy', 'setting strategy'],
        ({ document: { spec } }) => placesOf(spec.strategy.params, '/spec/strategy/params'),
        'The spec states none: the defaults of the strategy hold.',
      ),
    ].map((question) => ({
      ...question,
      answer: (facts: Facts) => withNewestValues(facts, question),
    })),
    ofSpec(
      'strategy',
      'Which strategy does it follow?',
      'strategy and parameters',
      ['strategy', 'which|what strategy', 'how trade|work'],
      ({ document: { spec } }) => [
        '/spec/strategy/name',
        '/spec/strategy/module',
        ...placesOf(spec.strategy.params, '/spec/strategy/params'),
      ],
      'It has none.',
    ),
    ofSpec(
      'symbols',
      'Which symbols does it trade?',
      'instruments and currency',
      [
        'symbol',
        'instrument',
        'universe',
        'which|what symbol|instrument|market|stock trade',
        'currency',
      ],
      ({ document: { spec } }) => [
        ...spec.universe.symbols.slice(0, MOST - 1).map((_, i) => `/spec/universe/symbols/${i}`),
        '/spec/universe/currency',
      ],
      'It has none.',
    ),
    ofSpec(
      'timeframe',
      'What is the timeframe?',
      'the length of a bar',
      ['timeframe', 'time frame', 'long|length bar'],
      () => ['/spec/data/timeframe'],
      'It states none.',
    ),
    {
      id: 'data',
      example: 'Which market data does it use?',
      tells: 'datasets with their bars and days',
      keys: ['data', 'dataset', 'market data', 'which data', 'many bar data|dataset'],
      answer: datasets,
    },
    {
      id: 'gaps',
      example: 'Are there gaps in the data?',
      tells: 'findings about missing or stale bars',
      keys: [
        'gap',
        'missing|stale bar|data',
        'gap data',
        'data complete|missing|stale',
        'data quality',
      ],
      answer: gaps,
    },
    ofSpec(
      'engine',
      'How are orders filled, and what do they cost?',
      'settings of the engine that the spec states',
      [
        'engine',
        'setting engine',
        'fill model',
        'how order filled|fill',
        'fee model|rate',
        'fee configured|setting|set',
        'slippage model',
        'account model',
        'leverage|margin account',
      ],
      ({ document: { spec } }) => leaves(spec.engine ?? {}, `/spec/engine`),
      'The spec states none: the defaults hold.',
    ),
    ofSpec(
      'models',
      'Which models does it have?',
      'ONNX models with their digests',
      ['model', 'ml model', 'onnx', 'machine learning'],
      ({ document: { spec } }) =>
        (spec.ml_models ?? [])
          .slice(0, 10)
          .flatMap((_, i) =>
            ['name', 'path', 'digest'].map((name) => `/spec/ml_models/${i}/${name}`),
          ),
      'It has no models.',
    ),
    ofSpec(
      'agents',
      'Which agents does it have?',
      'their roles',
      ['agent', 'which agent', 'role'],
      ({ document: { spec } }) =>
        (spec.agents ?? []).slice(0, MOST).map((_, i) => `/spec/agents/${i}/role`),
      'It has no agents.',
    ),
  ],
};
