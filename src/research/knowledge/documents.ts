import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { MAX_DOCUMENT_BYTES } from '../../base/document-size.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, KnowledgeDocumentsTable, KnowledgePassagesTable } from '../../storage/tables.ts';
import { isMarkdown, linesOf, passagesOf } from './passages.ts';
import { termsOf } from './search-terms.ts';

export type Knowledge = StorageService;

export type Document = Readonly<KnowledgeDocumentsTable>;
export type DocumentHead = Omit<Document, 'text'>;

const MOST_PASSAGES = 10_000;
/** Splitting this many lines blocks the thread for some tens of milliseconds. */
const MOST_LINES = 200_000;

/** Passages per transaction, which blocks other writes for some tens of milliseconds. */
const PASSAGES_AT_ONCE = 100;

export interface NewDocument {
  readonly name: string;
  /** Defaults to the first heading of the text, or the name. */
  readonly title?: string | undefined;
  readonly text: string;
  /** Whether to replace a document with the same name and another text. */
  readonly replace?: boolean | undefined;
}

/** A document whose passages are stored but not found by searches before it is published. */
export type Staged = Omit<Document, 'revision' | 'added_at' | 'added_by'> & {
  readonly replace: boolean;
};

/**
 * Splits a text into passages and stores them in small transactions, so that other writes can happen in
 * between. The caller publishes the result with `publishDocument`, or removes it with `clearPassages`.
 *
 * @returns the existing document if its name and text are the same.
 * @throws ServiceError `invalid_request`, `payload_too_large`
 */
export async function stageDocument(
  { storage, clock }: Knowledge,
  { name, title, text, replace = false }: NewDocument,
): Promise<Staged | DocumentHead> {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_DOCUMENT_BYTES) {
    const most = `${MAX_DOCUMENT_BYTES / 1024} KiB`;
    throw new ServiceError('payload_too_large', `the text is larger than ${most}`, {
      remedy: 'Split it into several documents.',
    });
  }
  const sha256 = createHash('sha256').update(text).digest('hex');
  const before = await findNamed(storage.read, name);
  if (before?.sha256 === sha256) return before;
  const lines = linesOf(text, MOST_LINES + 1);
  if (lines.length > MOST_LINES) throw tooMany('lines', MOST_LINES);
  const own = { document_id: uuidv7({ msecs: clock() }), name, sha256 };
  const { passages, heading } = await cut(lines, own, title);
  const staged = {
    ...own,
    title: title ?? heading ?? name,
    bytes,
    lines: lines.length,
    passages: passages.length,
    text,
    replace,
  };
  const { document_id } = own;
  await storage.write(async (tx) => unlist(tx, document_id, clock()));
  for (let from = 0; from < passages.length; from += PASSAGES_AT_ONCE) {
    const part = passages.slice(from, from + PASSAGES_AT_ONCE);
    await storage.write(async (tx) => {
      const { last } = await tx
        .selectFrom('knowledge_passages')
        .select((of) => of.fn.max('number').as('last'))
        .executeTakeFirstOrThrow();
      const rows = part.map((one, i) => ({ number: (last ?? 0) + 1 + i, ...one }));
      await tx.insertInto('knowledge_passages').values(rows).execute();
    });
    await setImmediate();
  }
  return staged;
}

type PassageRow = Omit<KnowledgePassagesTable, 'number'>;

/** @throws ServiceError `invalid_request` for more than `MOST_PASSAGES`. */
async function cut(
  lines: readonly string[],
  { document_id, name }: Pick<Document, 'document_id' | 'name'>,
  title: string | undefined,
) {
  const passages: PassageRow[] = [];
  let top: string | undefined;
  for (const { heading, text, ...place } of passagesOf(lines, isMarkdown(name))) {
    top ??= heading[0];
    const ordinal = passages.length + 1;
    const terms = termsOf([title ?? top ?? name, ...heading, text].join('\n'));
    passages.push({
      document_id,
      ordinal,
      ...place,
      heading: JSON.stringify(heading),
      text,
      terms,
    });
    if (passages.length > MOST_PASSAGES) throw tooMany('passages', MOST_PASSAGES);
    if (ordinal % PASSAGES_AT_ONCE === 0) await setImmediate();
  }
  return { passages, heading: top };
}

export interface Published {
  readonly document: DocumentHead;
  /** Id of the replaced document, for `clearPassages`. */
  readonly replaced: string | null;
}

/**
 * Makes a staged document visible and removes the one it replaces, in one transaction. Returns an
 * existing document unchanged.
 *
 * @throws ServiceError `conflict` if the name belongs to another text and `replace` is not set.
 */
export async function publishDocument(
  { storage, clock }: Knowledge,
  actor: Actor,
  staged: Staged | DocumentHead,
): Promise<Published> {
  return storage.write(async (tx) => {
    if ('revision' in staged) return { document: staged, replaced: null };
    const { replace, ...added } = staged;
    const now = clock();
    const { document_id, name, sha256, bytes } = added;
    const before = await findNamed(tx, name);
    // Another request has added the same document since it was staged.
    if (before?.sha256 === sha256) return { document: before, replaced: null };
    if (before !== undefined && !replace) throw nameTaken(name);
    const replaced = before?.document_id ?? null;
    const revision = (before?.revision ?? 0) + 1;
    await appendAudit(tx, now, {
      actor,
      action: 'admin.knowledge.document.add',
      target: `document:${document_id}`,
      details: { name, revision, sha256, bytes, replaces: replaced },
    });
    if (replaced !== null) await withdraw(tx, replaced, now);
    await tx.deleteFrom('knowledge_unlisted').where('document_id', '=', document_id).execute();
    const document = { ...added, revision, added_at: now, added_by: actor };
    await tx.insertInto('knowledge_documents').values(document).execute();
    const { text: _, ...head } = document;
    return { document: head, replaced };
  });
}

/** Removes a document; call `clearPassages` afterwards. @throws ServiceError `not_found` */
export async function removeDocument(
  { storage, clock }: Knowledge,
  actor: Actor,
  document_id: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const now = clock();
    const { name, revision, sha256 } = await getDocument(tx, document_id);
    await appendAudit(tx, now, {
      actor,
      action: 'admin.knowledge.document.remove',
      target: `document:${document_id}`,
      details: { name, revision, sha256 },
    });
    await withdraw(tx, document_id, now);
  });
}

async function withdraw(tx: Db, document_id: string, now: number): Promise<void> {
  await tx.deleteFrom('knowledge_documents').where('document_id', '=', document_id).execute();
  await unlist(tx, document_id, now);
}

async function unlist(tx: Db, document_id: string, since: number): Promise<void> {
  await tx.insertInto('knowledge_unlisted').values({ document_id, since }).execute();
}

/** Unpublished documents older than this are treated as abandoned. */
const ABANDONED_AFTER_MS = 60 * 60_000;

/** Removes unpublished passages left by killed processes. */
export async function clearAbandonedPassages({ storage, clock }: Knowledge): Promise<void> {
  const left = await storage.read
    .selectFrom('knowledge_unlisted')
    .select('document_id')
    .where('since', '<', clock() - ABANDONED_AFTER_MS)
    .execute();
  for (const { document_id } of left) await clearPassages({ storage }, document_id);
}

/** Removes the passages of a removed or unpublished document, in small transactions. */
export async function clearPassages(
  { storage }: Pick<Knowledge, 'storage'>,
  document_id: string,
): Promise<void> {
  let isDone = false;
  while (!isDone) {
    isDone = await storage.write(async (tx) => {
      const unlisted = await tx
        .selectFrom('knowledge_unlisted')
        .select('document_id')
        .where('document_id', '=', document_id)
        .executeTakeFirst();
      if (unlisted === undefined) return true;
      const some = await tx
        .selectFrom('knowledge_passages')
        .select('number')
        .where('document_id', '=', document_id)
        .orderBy('ordinal')
        .limit(PASSAGES_AT_ONCE)
        .execute();
      const numbers = some.map(({ number }) => number);
      if (numbers.length > 0) {
        await tx.deleteFrom('knowledge_passages').where('number', 'in', numbers).execute();
        return false;
      }
      await tx.deleteFrom('knowledge_unlisted').where('document_id', '=', document_id).execute();
      return true;
    });
    await setImmediate();
  }
}

const HEAD = [
  'document_id',
  'name',
  'title',
  'revision',
  'sha256',
  'bytes',
  'lines',
  'passages',
  'added_at',
  'added_by',
] as const satisfies readonly (keyof DocumentHead)[];

/** @throws ServiceError `invalid_request` for an unknown cursor. */
export async function listDocuments(
  db: Db,
  { name }: { readonly name?: string | undefined },
  request: PageRequest,
): Promise<Page<DocumentHead>> {
  return readPage(
    ['knowledge', name],
    request,
    (document) => document.document_id,
    (after = '', limit) => {
      const query = db
        .selectFrom('knowledge_documents')
        .select(HEAD)
        .where('document_id', '>', after)
        .orderBy('document_id')
        .limit(limit);
      return (name === undefined ? query : query.where('name', '=', name)).execute();
    },
  );
}

/** @throws ServiceError `not_found` */
export async function getDocument(db: Db, document_id: string): Promise<Document> {
  const document = await db
    .selectFrom('knowledge_documents')
    .selectAll()
    .where('document_id', '=', document_id)
    .executeTakeFirst();
  if (document !== undefined) return document;
  throw new ServiceError('not_found', `there is no document ${JSON.stringify(document_id)}`, {
    remedy: 'Find its id with `service-local knowledge list`; a replaced text gets a new id.',
  });
}

async function findNamed(db: Db, name: string): Promise<DocumentHead | undefined> {
  return db
    .selectFrom('knowledge_documents')
    .select(HEAD)
    .where('name', '=', name)
    .executeTakeFirst();
}

function tooMany(what: 'lines' | 'passages', most: number): ServiceError {
  return new ServiceError('invalid_request', `the text has more than ${most} ${what}`, {
    reason: `too_many_${what}`,
    remedy: 'Split it into several documents.',
  });
}

function nameTaken(name: string): ServiceError {
  return new ServiceError('conflict', `another text is already called ${JSON.stringify(name)}`, {
    reason: 'name_taken',
    remedy: 'Replace it with `replace` (--replace), or choose another name.',
  });
}
