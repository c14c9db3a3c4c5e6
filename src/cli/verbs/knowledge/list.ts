import type { listDocuments } from '../../../api/knowledge.ts';
import { listAnswer } from '../../list-answer.ts';
import { DOCUMENT_COLUMNS } from '../../knowledge.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list the documents that the server knows',
  settings: ['server_url'],
  examples: ['knowledge list', 'knowledge list --json | jq -r .documents[].name'],
  run: (context) =>
    listAnswer<typeof listDocuments>(
      context,
      'documents',
      '/knowledge/documents',
      DOCUMENT_COLUMNS,
      {},
    ),
});
