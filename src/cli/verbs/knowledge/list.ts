import type { listDocuments } from '../../../api/knowledge.ts';
import { listAnswer } from '../../list-answer.ts';
import { DOCUMENT_COLUMNS } from '../../knowledge.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the documents of the server',
  examples: ['knowledge list', 'knowledge list --json | jq -r .documents[].name'],
  run: (server) =>
    listAnswer<typeof listDocuments>(
      server,
      'documents',
      '/knowledge/documents',
      DOCUMENT_COLUMNS,
      {},
    ),
});
