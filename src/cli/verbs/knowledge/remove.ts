import type { removeDocument } from '../../../api/knowledge.ts';
import { connect } from '../../connect.ts';
import { DOCUMENT_ARGUMENT, findDocumentId } from '../../knowledge.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'have the server forget a document',
  arguments: { document: DOCUMENT_ARGUMENT },
  settings: ['server_url'],
  examples: ['knowledge remove notes/risk.md'],
  async run(context, { document: ref }) {
    const server = await connect(context);
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
