import type { Passage, searchKnowledge } from '../../../api/knowledge.ts';
import type { AnswerOf } from '../../../client/route.ts';
import { ServiceError } from '../../../base/errors.ts';
import { printable, printableLine } from '../../../base/printable.ts';
import type { Output } from '../../output.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'find passages of documents by their words',
  description:
    'Shows the passages that have most of the words, and rare ones of them, with the lines at which they stand. Whole words are compared, without case and accents; nothing in the query is syntax.',
  arguments: { words: { description: 'what to look for', variadic: true } },
  options: {
    limit: { value: 'n', description: 'how many, at most 50', parse: parseLimit, default: 10 },
    federated: {
      description:
        'ask the other instances in knowledge_file of the server, too, and say who answered',
    },
  },
  examples: [
    'knowledge search drawdown limit',
    'knowledge search "max drawdown" --federated --json',
  ],
  async run(server, { words }, { limit, federated }) {
    const found = await server.call<typeof searchKnowledge>('get', '/knowledge/search', {
      query: { q: words.join(' '), limit, federated: federated ? 'true' : 'false' },
    });
    return { data: found, show: (out) => showFound(out, found) };
  },
});

function parseLimit(text: string): number {
  if (/^[1-9]\d?$/.test(text) && Number(text) <= 50) return Number(text);
  throw new ServiceError('usage', `'${text}' is no whole number from 1 to 50`);
}

function showFound(out: Output, { items, instances }: AnswerOf<typeof searchKnowledge>): void {
  if (items.length === 0) out.line('There is none.');
  for (const item of items) showPassage(out, item);
  for (const { name, status, reason, took_ms } of instances) {
    const colour = status === 'answered' ? out.style.green : out.style.yellow;
    const why = reason === null ? '' : `: ${printableLine(reason)}`;
    out.line(`${printableLine(name)} ${colour(status)} after ${took_ms} ms${why}`);
  }
}

function showPassage(
  out: Output,
  { document, heading, lines: { from, to }, text, instance }: Passage,
): void {
  const place = `${instance === null ? '' : `${instance} `}${document}:${from}-${to}`;
  out.line(`${out.style.bold(printableLine(place))}  ${printableLine(heading.join(' › '))}`);
  for (const line of printable(text).split('\n')) out.line(`  ${line}`);
  out.line();
}
