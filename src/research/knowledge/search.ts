import { sql } from 'kysely';
import type { Storage } from '../../storage/storage.ts';
import { queryTerms } from './terms.ts';

/** A passage that has some of the words, as the API tells it. */
export interface Found {
  readonly document_id: string;
  /** Its name. */
  readonly document: string;
  readonly passage_id: string;
  readonly heading: string[];
  readonly lines: { readonly from: number; readonly to: number };
  readonly text: string;
  /** The higher the better; to be compared with those of the same search and instance alone. */
  readonly score: number;
}

/** Words of a query that count. */
const MOST_TERMS = 32;

/**
 * The passages with any of the words, those first that have more, and rarer ones, of them. What stands
 * in the query is words and nothing else.
 * @param limit from 1.
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
  // Terms have no quotation marks; within them nothing is syntax.
  const query = terms.map((term) => `"${term}"`).join(' OR ');
  return sql<Row>`select ${COLUMNS}, -bm25(knowledge_index) as score
    from knowledge_index
    join knowledge_passages as passage on passage.number = knowledge_index.rowid
    join knowledge_documents as document on document.document_id = passage.document_id
    where knowledge_index match ${query}
    order by score desc, passage.number limit ${limit}`;
}

/**
 * PostgreSQL weighs all words alike: here a word counts as much as it is rare, as it does for `bm25`
 * of SQLite (https://sqlite.org/fts5.html#the_bm25_function). Without `materialized` it would count
 * the passages with a word anew for each that it finds.
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
