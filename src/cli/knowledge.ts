import type { Document, listDocuments } from '../api/knowledge.ts';
import type { Client } from '../client/client.ts';
import { ServiceError } from '../base/errors.ts';
import type { Columns } from './show-items.ts';

export const DOCUMENT_ARGUMENT = { description: 'name or id of a document' } as const;

export const DOCUMENT_COLUMNS: Columns<Document> = {
  document: ({ document_id }) => document_id,
  name: ({ name }) => name,
  title: ({ title }) => title,
  revision: ({ revision }) => String(revision),
  passages: ({ passages }) => String(passages),
  bytes: ({ bytes }) => String(bytes),
  added: ({ added_at }) => added_at,
  by: ({ added_by, added_by_name }) => added_by_name ?? added_by,
};

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @throws ServiceError `not_found` */
export async function findDocumentId(server: Client, ref: string): Promise<string> {
  if (ID.test(ref)) return ref;
  const { items } = await server.call<typeof listDocuments>('get', '/knowledge/documents', {
    query: { name: ref },
  });
  if (items[0] !== undefined) return items[0].document_id;
  throw new ServiceError('not_found', `there is no document ${JSON.stringify(ref)}`, {
    remedy: 'List the documents with `service-local knowledge list`.',
  });
}
