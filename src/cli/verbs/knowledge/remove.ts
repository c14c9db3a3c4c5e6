import type { removeDocument } from '../../../api/knowledge.ts';
import { DOCUMENT_ARGUMENT, findDocumentId } from '../../knowledge.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'remove a document from the server',
  arguments: { document: DOCUMENT_ARGUMENT },
  examples: ['knowledge remove notes/risk.md'],
  async run(server, { document: ref }) {
    const document_id = await findDocumentId(server, ref);
    await server.call<typeof removeDocument>('delete', '/knowledge/documents/{document_id}', {
      params: { document_id },
    });
    return {
      data: { document_id, removed: true },
      show: (out) => out.line(`${ref} is removed.`),
    };
  },
});
