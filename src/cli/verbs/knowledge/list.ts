import type { listDocuments } from '../../../api/knowledge.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { DOCUMENT_COLUMNS } from '../../knowledge.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the documents that the server knows',
  settings: ['server_url'],
  examples: ['knowledge list', 'knowledge list --json | jq -r .documents[].name'],
  async run(context) {
    const server = await connect(context);
    const documents = await Array.fromAsync(
      server.items<typeof listDocuments>('get', '/knowledge/documents', {}),
    );
    return { data: { documents }, show: (out) => showItems(out, documents, DOCUMENT_COLUMNS) };
  },
});
