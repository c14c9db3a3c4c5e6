import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { closest } from '../base/closest.ts';
import type { Problem } from '../base/errors.ts';
import { isCatalogued } from '../market/catalogue.ts';
import { optional, type Path, type SourceDocument } from './document.ts';
import { fieldsOf, listOf } from './fields.ts';
import type { BotSpec } from './spec.ts';

export interface DataSource {
  readonly symbol: string;
  /** Location of the address in the spec. */
  readonly at: Path;
  /** Absolute path or `catalog://NAME`. */
  readonly address: string;
}

/** Data sources of a document that may have problems. */
export function sourcesNamed({ value }: SourceDocument, directory: string): DataSource[] {
  const { universe, data } = fieldsOf(fieldsOf(value).spec);
  const { source, sources } = fieldsOf(data);
  const [first] = listOf(fieldsOf(universe).symbols);
  const named: readonly (readonly [symbol: unknown, field: Path, address: unknown])[] = [
    [first ?? 'data', ['source'], source],
    ...Object.entries(fieldsOf(sources)).map(
      ([symbol, address]) => [symbol, ['sources', symbol], address] as const,
    ),
  ];
  return named.flatMap(([symbol, field, address]) =>
    typeof address !== 'string' || address === ''
      ? []
      : [
          {
            symbol: String(symbol),
            at: ['spec', 'data', ...field],
            address: addressOf(address, directory),
          },
        ],
  );
}

/** The file or dataset of the benchmark; none for a symbol of the bot. */
export function benchmarkNamed({ value }: SourceDocument, directory: string): DataSource[] {
  const { universe, data } = fieldsOf(fieldsOf(value).spec);
  const { benchmark } = fieldsOf(data);
  const isFile = typeof benchmark === 'string' && benchmark !== '';
  if (!isFile || listOf(fieldsOf(universe).symbols).includes(benchmark)) return [];
  const address = addressOf(benchmark, directory);
  return [{ symbol: 'benchmark', at: ['spec', 'data', 'benchmark'], address }];
}

export function dataFiles(spec: BotSpec, directory: string): Record<string, string> {
  const { universe, data } = spec.spec;
  const sources = universe.symbols.map((symbol): [string, string] => [
    symbol,
    addressOf(data.source ?? data.sources![symbol]!, directory),
  ]);
  return Object.fromEntries(sources);
}

/** Keeps `catalog://` addresses, because the reader of the data knows the catalogue's directory. */
function addressOf(source: string, directory: string): string {
  return isCatalogued(source) ? source : resolve(directory, source);
}

export function missingData({ address, at }: DataSource, document: SourceDocument): Problem[] {
  if (isCatalogued(address)) return [];
  const found = statSync(address, { throwIfNoEntry: false });
  if (found?.isFile()) return [];
  const meant =
    found === undefined
      ? fileNear(address, document.written(at) ?? address, DATA_EXTENSION)
      : undefined;
  const message =
    found === undefined
      ? `no such file: ${address}`
      : `${address} is ${found.isDirectory() ? 'a directory' : 'not a regular file'}; name a CSV or Parquet file`;
  return [document.problem(at, { code: 'data_not_found', message, ...optional(meant) })];
}

const DATA_EXTENSION = /\.(?:csv|parquet)(?:\.gz)?$/i;

/**
 * Finds a file in the directory of `path` whose name is similar, extensions aside. The result has the
 * directory part of `authored`, the path in the spec.
 */
export function fileNear(path: string, authored: string, extension: RegExp): string | undefined {
  try {
    const stemOf = (name: string): string => name.replace(extension, '');
    const names = readdirSync(dirname(path), { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && extension.test(entry.name))
      .map(({ name }) => name);
    const stem = closest(stemOf(basename(path)), names.map(stemOf));
    const name = names.find((one) => stemOf(one) === stem);
    return name && authored.slice(0, -basename(path).length) + name;
  } catch {
    return undefined;
  }
}
