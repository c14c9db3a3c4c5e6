import type { Passage, searchKnowledge } from '../../../api/knowledge.ts';
import type { AnswerOf } from '../../../client/route.ts';
import { ServiceError } from '../../../base/errors.ts';
import { printable, printableLine } from '../../../base/printable.ts';
import type { Output } from '../../output.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'find passages of documents by their words',
  description:
    'Shows the passages that best match the words, with their line numbers; rare words count more. Compares whole words and ignores case and accents. The query has no special syntax.',
  arguments: { words: { description: 'words to search for', variadic: true } },
  options: {
    limit: {
      value: 'n',
      description: 'number of passages, at most 50',
      parse: parseLimit,
      default: 10,
    },
    federated: {
      description:
        'also search the other instances in knowledge_file of the server, and report which responded',
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
  throw new ServiceError('usage', `'${text}' is not an integer from 1 to 50`);
}

function showFound(out: Output, { items, instances }: AnswerOf<typeof searchKnowledge>): void {
  if (items.length === 0) out.line('No passages found.');
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
