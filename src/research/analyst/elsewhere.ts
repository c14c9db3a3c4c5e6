import { formatCountOf } from '../../base/format.ts';
import { at, withQuery } from '../call-api.ts';
import {
  botOf,
  cite,
  missing,
  quoted,
  tasksOf,
  type Facts,
  type Page,
  type Source,
} from './facts.ts';
import { reply, type Questions, type Reply } from './question.ts';
import { sayCited } from './results.ts';

/** What of a question is no part of what is looked for. */
const ABOUT =
  /^.*?\b(?:documents?|documentation|docs|knowledge|notes|papers?)\b(?:\s+(?:say|says|tell|tells|write|have|has|know|knows|is there|there is))?\s*(?:of|on|about|for|regarding)?\s*/is;

interface Passage {
  readonly document: string;
  readonly lines: { readonly from: number; readonly to: number };
  readonly text: string;
}

/** Of what is looked for, so many characters. */
const LONGEST_SEARCH = 500;
/** Of a passage, so many characters are quoted. */
const LONGEST_QUOTATION = 600;

async function search(facts: Facts): Promise<Reply> {
  const q = facts.prompt.text
    .replace(ABOUT, '')
    .slice(0, LONGEST_SEARCH)
    .replace(/[?!.\s]+$/, '');
  if (q === '')
    throw missing(
      'I do not know what to look for',
      'Ask, for example: What do the documents say about drawdowns?',
    );
  const found = await facts.get<Page<Passage>>(withQuery('/knowledge/search', { q, limit: 3 }));
  const { items } = found.data;
  if (items.length === 0) {
    return reply(
      `No passage of the documents has any of these words: ${quoted(q)}. Documents are added with \`service-local knowledge add\`.`,
      cite(found, '/items', 'passages'),
    );
  }
  return reply(
    [
      `Passages that have words of ${quoted(q)}, quoted and not followed:`,
      ...items.map(({ document, lines: { from, to }, text }) => {
        const cut = text.length > LONGEST_QUOTATION ? `${text.slice(0, LONGEST_QUOTATION)}…` : text;
        return `- ${quoted(document)}, lines ${from} to ${to}: ${quoted(cut)}`;
      }),
    ],
    items.flatMap(({ document }, i) => [
      cite(found, `/items/${i}/passage_id`, `passage ${i + 1} of ${document}`),
      cite(found, `/items/${i}/lines/from`, `passage ${i + 1} from line`),
      cite(found, `/items/${i}/lines/to`, `passage ${i + 1} to line`),
    ]),
  );
}

interface Reports {
  readonly versions: readonly {
    readonly version: number;
    readonly year: number;
    readonly status: string;
    readonly frozen_at: string;
  }[];
}

/** The newest test of a kind that was done. @throws ServiceError `not_found` */
async function testOf(facts: Facts, kind: 'conformance' | 'stress'): Promise<Source> {
  const { items } = (await tasksOf(facts, { kind, status: 'success', limit: 1 })).data;
  const task = items.find((one) => one.kind === kind);
  if (task !== undefined) return facts.get(at`/tasks/${task.task_id}/result`);
  const { slug, document } = (await botOf(facts)).data;
  if (document.spec.kind === 'research') {
    throw missing(
      `a bot of kind research has no ${kind} test`,
      'Those are of bots that trade; this one is backtested, and talked with.',
    );
  }
  throw missing(
    `there is no ${kind} test of this bot yet`,
    `Make one with \`service-local bots ${kind} ${slug}\`.`,
  );
}

export const ELSEWHERE: Questions = {
  title: 'Documents, tests and reports',
  questions: [
    {
      id: 'knowledge',
      seeks: true,
      example: 'What do the documents say about drawdowns?',
      tells: 'passages, with document and lines',
      keys: [
        'document|documentation|docs|knowledge',
        'what document|documentation|docs|knowledge|notes say|tell about|of|on',
        'document say about',
      ],
      answer: search,
    },
    {
      id: 'conformance',
      example: 'What came of the conformance test?',
      tells: 'cases by how they ended, and whether that still holds',
      keys: ['conformance', 'conformance test|result|pass'],
      async answer(facts) {
        const result = await testOf(facts, 'conformance');
        const counts = ['pass', 'fail', 'inconclusive', 'not_applicable', 'not_run'];
        const citations = [
          cite(result, '/version'),
          ...counts.map((name) => cite(result, `/counts/${name}`)),
          cite(result, '/stale'),
        ];
        return reply(
          [
            'The newest that was done; it never discharges Article 6 by itself:',
            ...citations.map(sayCited),
          ],
          citations,
        );
      },
    },
    {
      id: 'stress',
      example: 'What came of the stress test?',
      tells: 'its verdict, and whether that still holds',
      keys: ['stress', 'stress test|result|pass'],
      async answer(facts) {
        const result = await testOf(facts, 'stress');
        const citations = ['/version', '/verdict', '/multiplier', '/stale'].map((place) =>
          cite(result, place),
        );
        return reply(['The newest that was done:', ...citations.map(sayCited)], citations);
      },
    },
    {
      id: 'validation_report',
      example: 'What is the state of the validation report?',
      tells: 'the newest that was frozen; else what the draft of this year lacks',
      keys: [
        'validation',
        'validation report',
        'compliant|compliance',
        'state|status validation report',
        'rts|rts6 report',
      ],
      async answer(facts) {
        const frozen = await facts.get<Reports>(at`/bots/${facts.bot}/risk/validation-reports`);
        const [newest] = frozen.data.versions;
        if (newest !== undefined) {
          const { version, year: of, status: how, frozen_at } = newest;
          const text = `The newest is version ${version}, of ${of}: ${how}, frozen ${frozen_at}. It states no compliance but what people have put into it.`;
          const names = ['version', 'year', 'status', 'frozen_at'];
          return reply(
            text,
            names.map((name) => cite(frozen, `/versions/0/${name}`, name)),
          );
        }
        const report = await facts.get(at`/bots/${facts.bot}/risk/validation-report`);
        const status = cite(report, '/status');
        const year = cite(report, '/period/year');
        const gaps = cite(report, '/generated_by/gaps', 'gaps');
        const text = `None was frozen. That of ${year.value} can be drafted (${status.value}); ${formatCountOf(gaps.value as number, 'thing')} that it asks for ${gaps.value === 1 ? 'is' : 'are'} not in the records. It states no compliance; people assess and sign it.`;
        return reply(text, status, year, gaps);
      },
    },
  ],
};
