import { formatCountOf } from '../../base/format.ts';
import { at, withQuery } from '../call-api.ts';
import type { Citation } from '../answering.ts';
import {
  botOf,
  cite,
  citeFields,
  missing,
  otherValues,
  quoted,
  step,
  tasksOf,
  type Bot,
  type Facts,
  type Page,
  type Source,
  type Spec,
} from './facts.ts';
import { andMore, reply, type Reply } from './reply.ts';
import { stateCited } from './topics-result.ts';
import type { Topic, TopicPart } from './topics.ts';

/** Entries of a map or list in an answer. */
const MOST = 30;

/** Values of the spec of the current version, as its author wrote them. */
function specTopic(
  id: string,
  example: string,
  about: string,
  keys: readonly string[],
  places: (spec: Spec) => readonly string[],
  none: string,
): Topic {
  return {
    id,
    example,
    about,
    keys,
    async answer(facts) {
      const bot = await botOf(facts);
      const citations = places(bot.data.document.spec)
        .slice(0, MOST)
        .map((place) => citeDocument(bot, place));
      const stated = citations.filter(({ value }) => value !== null);
      if (stated.length === 0) return reply(none, citations);
      return reply(['In the spec of the current version:', ...stated.map(stateCited)], stated);
    },
  };
}

const citeDocument = (bot: Source<Bot>, place: string): Citation =>
  cite(bot, `/document${place}`, place.replace(/^\/(spec\/)?/, '').replaceAll('/', '.'));

const placesOf = (value: object | undefined, place: string): readonly string[] =>
  Object.keys(value ?? {}).map((name) => `${place}/${step(name)}`);

/** Places of all values within maps and lists. */
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
  const addresses = Object.values(sources ?? { source });
  const names = [
    ...new Set(addresses.map((address) => String(address).replace(/^catalog:\/\//, ''))),
  ];
  const shown = names.slice(0, 8);
  const found = await Promise.all(
    shown.map((name) => facts.get<Dataset>(at`/data/datasets/${name}`)),
  );
  const lines = found.map(
    ({ data: { name, timeframe, bars, from, to } }) =>
      `- ${quoted(name)}: ${formatCountOf(bars, 'bar')} of ${timeframe}, ${from} to ${to}`,
  );
  return reply(
    ['In the catalogue of the server:', ...lines, ...andMore(names, shown)],
    found.flatMap((dataset) =>
      citeFields(
        dataset,
        '',
        ['bars', 'timeframe', 'from', 'to'],
        (field) => `${dataset.data.name} ${field}`,
      ),
    ),
  );
}

const parameters = specTopic(
  'parameters',
  'What are the parameters of the strategy?',
  'each with its value in the spec',
  ['parameter|param|params', 'parameter|param strategy', 'setting strategy'],
  ({ strategy }) => placesOf(strategy.params, '/spec/strategy/params'),
  'The spec states none: the strategy uses its defaults.',
);

/** Mentions other values of the newest run, such as a proposal's. */
async function parametersOfRun(facts: Facts): Promise<Reply> {
  const { text, citations } = await parameters.answer(facts);
  const query = { status: 'success', kind: 'backtest,paper', limit: 1 };
  const [newest] = (await tasksOf(facts, query)).data.items;
  const others = newest === undefined ? undefined : otherValues(newest);
  if (others === undefined) return reply(text, citations);
  return reply(
    [text, `The newest run, ${newest!.task_id}, had other values: ${others}.`],
    citations,
  );
}

/** The part of a question that is not searched for. */
const BEFORE_SEARCH =
  /^.*?\b(?:documents?|documentation|docs|knowledge|notes|papers?)\b(?:\s+(?:say|says|tell|tells|write|have|has|know|knows|is there|there is))?\s*(?:of|on|about|for|regarding)?\s*/is;
const LONGEST_SEARCH = 500;
const LONGEST_QUOTATION = 600;

interface Passage {
  readonly document: string;
  readonly lines: { readonly from: number; readonly to: number };
  readonly text: string;
}

async function search(facts: Facts): Promise<Reply> {
  const q = facts.text
    .replace(BEFORE_SEARCH, '')
    .slice(0, LONGEST_SEARCH)
    .replace(/[?!.\s]+$/, '');
  if (q === '')
    throw missing(
      'the question names nothing to search for',
      'Ask, for example: What do the documents say about drawdowns?',
    );
  const found = await facts.get<Page<Passage>>(withQuery('/knowledge/search', { q, limit: 3 }));
  const { items } = found.data;
  if (items.length === 0) {
    const text = `No passage of the documents contains any of these words: ${quoted(q)}. Add documents with \`service-local knowledge add\`.`;
    return reply(text, cite(found, '/items', 'passages'));
  }
  const lines = items.map(({ document, lines: { from, to }, text }) => {
    const cut = text.length > LONGEST_QUOTATION ? `${text.slice(0, LONGEST_QUOTATION)}…` : text;
    return `- ${quoted(document)}, lines ${from} to ${to}: ${quoted(cut)}`;
  });
  return reply(
    [`Passages with words of ${quoted(q)}, quoted:`, ...lines],
    items.flatMap(({ document }, i) => [
      cite(found, `/items/${i}/passage_id`, `passage ${i + 1} of ${document}`),
      cite(found, `/items/${i}/lines/from`, `passage ${i + 1} from line`),
      cite(found, `/items/${i}/lines/to`, `passage ${i + 1} to line`),
    ]),
  );
}

/** The newest successful test of a kind. @throws ServiceError `not_found` */
async function testOf(facts: Facts, kind: 'conformance' | 'stress'): Promise<Source> {
  const { items } = (await tasksOf(facts, { kind, status: 'success', limit: 1 })).data;
  const task = items.find((one) => one.kind === kind);
  if (task !== undefined) return facts.get(at`/tasks/${task.task_id}/result`);
  const { slug, document } = (await botOf(facts)).data;
  if (document.spec.kind === 'research') {
    throw missing(
      `a bot of kind research has no ${kind} test`,
      'Only bots that trade have these tests.',
    );
  }
  throw missing(
    `this bot has no ${kind} test yet`,
    `Run one with \`service-local bots ${kind} ${slug}\`.`,
  );
}

function testTopic(
  kind: 'conformance' | 'stress',
  about: string,
  head: string,
  places: readonly string[],
): Topic {
  return {
    id: kind,
    example: `What is the result of the ${kind} test?`,
    about,
    keys: [kind, `${kind} test|result|pass`],
    async answer(facts) {
      const result = await testOf(facts, kind);
      const citations = places.map((place) => cite(result, place));
      return reply([head, ...citations.map(stateCited)], citations);
    },
  };
}

interface Reports {
  readonly versions: readonly {
    readonly version: number;
    readonly year: number;
    readonly status: string;
    readonly frozen_at: string;
  }[];
}

async function validationReport(facts: Facts): Promise<Reply> {
  const frozen = await facts.get<Reports>(at`/bots/${facts.bot}/risk/validation-reports`);
  const [newest] = frozen.data.versions;
  if (newest !== undefined) {
    const { version, year: of, status: state, frozen_at } = newest;
    return reply(
      `The newest is version ${version}, of ${of}: ${state}, frozen ${frozen_at}. It states compliance only where people entered it.`,
      citeFields(
        frozen,
        '/versions/0',
        ['version', 'year', 'status', 'frozen_at'],
        (field) => field,
      ),
    );
  }
  const report = await facts.get(at`/bots/${facts.bot}/risk/validation-report`);
  const status = cite(report, '/status');
  const year = cite(report, '/period/year');
  const gaps = cite(report, '/generated_by/gaps', 'gaps');
  const lacking = formatCountOf(gaps.value as number, 'required entry').replace(
    'entrys',
    'entries',
  );
  return reply(
    `None was frozen. That of ${year.value} can be drafted (${status.value}); the records lack ${lacking}. It states no compliance; people assess and sign it.`,
    status,
    year,
    gaps,
  );
}

export const SPEC_TOPICS: TopicPart = {
  title: 'The spec of the current version, its data, documents and tests',
  topics: [
    specTopic(
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
    { ...parameters, answer: parametersOfRun },
    specTopic(
      'strategy',
      'Which strategy does it follow?',
      'strategy and parameters',
      ['strategy', 'which|what strategy', 'how trade|work'],
      ({ strategy }) => [
        '/spec/strategy/name',
        '/spec/strategy/module',
        ...placesOf(strategy.params, '/spec/strategy/params'),
      ],
      'It has none.',
    ),
    specTopic(
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
      ({ universe }) => [
        ...universe.symbols.slice(0, MOST - 1).map((_, i) => `/spec/universe/symbols/${i}`),
        '/spec/universe/currency',
      ],
      'It has none.',
    ),
    specTopic(
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
      about: 'datasets with their bars and days',
      keys: ['data', 'dataset', 'market data', 'which data', 'many bar data|dataset'],
      answer: datasets,
    },
    specTopic(
      'engine',
      'How are orders filled, and what do they cost?',
      'settings of the engine in the spec',
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
      ({ engine }) => leaves(engine ?? {}, '/spec/engine'),
      'The spec states none: the defaults apply.',
    ),
    specTopic(
      'models',
      'Which models does it have?',
      'ONNX models with their digests',
      ['model', 'ml model', 'onnx', 'machine learning'],
      ({ ml_models = [] }) =>
        ml_models
          .slice(0, 10)
          .flatMap((_, i) =>
            ['name', 'path', 'digest'].map((name) => `/spec/ml_models/${i}/${name}`),
          ),
      'It has no models.',
    ),
    specTopic(
      'agents',
      'Which agents does it have?',
      'their roles',
      ['agent', 'which agent', 'role'],
      ({ agents = [] }) => agents.slice(0, MOST).map((_, i) => `/spec/agents/${i}/role`),
      'It has no agents.',
    ),
    {
      id: 'knowledge',
      isSearch: true,
      example: 'What do the documents say about drawdowns?',
      about: 'passages, with document and lines',
      keys: [
        'document|documentation|docs|knowledge',
        'what document|documentation|docs|knowledge|notes say|tell about|of|on',
        'document say about',
      ],
      answer: search,
    },
    testTopic(
      'conformance',
      'cases by outcome',
      'The newest test; it never discharges Article 6 by itself:',
      [
        '/version',
        ...['pass', 'fail', 'inconclusive', 'not_applicable', 'not_run'].map(
          (name) => `/counts/${name}`,
        ),
        '/stale',
      ],
    ),
    testTopic('stress', 'its verdict', 'The newest test:', [
      '/version',
      '/verdict',
      '/multiplier',
      '/stale',
    ]),
    {
      id: 'validation_report',
      example: 'What is the state of the validation report?',
      about: 'the newest frozen report, else the gaps of the draft',
      keys: [
        'validation',
        'validation report',
        'compliant|compliance',
        'state|status validation report',
        'rts|rts6 report',
      ],
      answer: validationReport,
    },
  ],
};
