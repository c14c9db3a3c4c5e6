import type { getDocument } from '../../../api/knowledge.ts';
import { ServiceError } from '../../../base/errors.ts';
import { printable } from '../../../base/printable.ts';
import { DOCUMENT_ARGUMENT, findDocumentId } from '../../knowledge.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show a document, or some lines of it',
  description: 'Shows the text; with --json, also the metadata of the document.',
  arguments: { document: DOCUMENT_ARGUMENT },
  options: {
    lines: {
      value: 'from-to',
      description: 'only these lines, for example 5-7',
      parse: parseLines,
    },
  },
  examples: ['knowledge show notes/risk.md', 'knowledge show notes/risk.md --lines 5-7'],
  async run(server, { document: ref }, { lines }) {
    const document_id = await findDocumentId(server, ref);
    const document = await server.call<typeof getDocument>(
      'get',
      '/knowledge/documents/{document_id}',
      { params: { document_id } },
    );
    const all = document.text.split(/\r\n|\n|\r/);
    const text = lines ? all.slice(lines.from - 1, lines.to).join('\n') : document.text;
    return {
      data: { ...document, text },
      show: (out) => out.line(printable(text).replace(/\n$/, '')),
    };
  },
});

function parseLines(text: string) {
  const [, from = '', to = from] = /^([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?$/.exec(text) ?? [];
  if (from !== '') return { from: Number(from), to: Number(to) };
  throw new ServiceError('usage', `'${text}' is not a range of lines such as 5-7`);
}
