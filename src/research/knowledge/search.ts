import { sql } from 'kysely';
import type { Storage } from '../../storage/storage.ts';
import { queryTerms } from './search-terms.ts';

/** A passage that contains some of the words, as in the API. */
export interface Found {
  readonly document_id: string;
  /** Name of the document. */
  readonly document: string;
  readonly passage_id: string;
  readonly heading: string[];
  readonly lines: { readonly from: number; readonly to: number };
  readonly text: string;
  /** Higher is better. Comparable only within one search of one instance. */
  readonly score: number;
}

/** Further words of a query are ignored. */
const MOST_TERMS = 32;

/**
 * Finds passages with any of the words. Passages with more of them, or with rarer ones, come first. The
 * text is never interpreted as query syntax.
 * @param limit at least 1.
 */
export async function searchPassages(
  { kind, read }: Pick<Storage, 'kind' | 'read'>,
  text: string,
  limit: number,
): Promise<readonly Found[]> {
  const terms = queryTerms(text, MOST_TERMS);
  if (terms.length === 0) return [];
  const query = kind === 'sqlite' ? onSqlite(terms, limit) : onPostgres(terms, limit);
  const { rows } = await query.execute(read);
  return rows.map(({ ordinal, heading, first_line: from, last_line: to, ...rest }) => ({
    ...rest,
    passage_id: `${rest.document_id}:${ordinal}`,
    heading: JSON.parse(heading) as string[],
    lines: { from, to },
  }));
}

interface Row {
  readonly document_id: string;
  readonly document: string;
  readonly ordinal: number;
  /** JSON. */
  readonly heading: string;
  readonly first_line: number;
  readonly last_line: number;
  readonly text: string;
  readonly score: number;
}

const COLUMNS = sql`passage.document_id, document.name as document, passage.ordinal,
  passage.heading, passage.first_line, passage.last_line, passage.text`;

function onSqlite(terms: readonly string[], limit: number) {
  // Terms contain no quotation marks, and nothing within quotation marks is syntax.
  const query = terms.map((term) => `"${term}"`).join(' OR ');
  return sql<Row>`select ${COLUMNS}, -bm25(knowledge_index) as score
    from knowledge_index
    join knowledge_passages as passage on passage.number = knowledge_index.rowid
    join knowledge_documents as document on document.document_id = passage.document_id
    where knowledge_index match ${query}
    order by score desc, passage.number limit ${limit}`;
}

/**
 * PostgreSQL gives all words the same weight, so this query weights rare words higher, as `bm25` of
 * SQLite does (https://sqlite.org/fts5.html#the_bm25_function). Without `materialized` it would count
 * the passages with a word again for each match.
 */
function onPostgres(terms: readonly string[], limit: number) {
  return sql<Row>`with term as (
      select query from unnest(${terms}::text[]) as given,
        phraseto_tsquery('simple', given) as query
      where numnode(query) > 0
    ), total as (
      select count(*) as passages from knowledge_passages
    ), weighed as materialized (
      select term.query,
        greatest(ln((passages - matching + 0.5) / (matching + 0.5)), 0.000001)::float8 as weight
      from term, total, lateral (
        select count(*) as matching from knowledge_passages where vector @@ term.query
      ) as counted
    )
    select ${COLUMNS}, (
        select sum(weight * ts_rank(passage.vector, query, 1)) from weighed
        where passage.vector @@ query
      ) as score
    from knowledge_passages as passage
    join knowledge_documents as document on document.document_id = passage.document_id
    where passage.vector @@ (
      select string_agg('(' || query::text || ')', ' | ')::tsquery from term
    )
    order by score desc, passage.number limit ${limit}`;
}
