import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from '../base/atomic-file.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { FULL_DISK, isSystemError, writeRemedy } from '../base/system-errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { BAR_COLUMNS, type Bars } from './bars.ts';
import { badDataError, checkBars } from './check-bars.ts';
import { barsDigest } from './digest.ts';
import { readBars } from './read-bars.ts';
import { SYMBOL } from './symbol.ts';
import { formatTime } from './bar-time.ts';
import { TIMEFRAME_NAMES, type TimeframeName } from './timeframe.ts';
import { writeParquet } from './write.ts';

/** `manifest.json` of a dataset. The folder `<name>` holds it and `<timeframe>.parquet`. */
const manifestSchema = z.object({
  schema: z.literal('service-local/dataset/v1'),
  symbol: z.string(),
  timeframe: z.enum(TIMEFRAME_NAMES),
  rows: z.int().positive(),
  /** First and last bar, as written by `formatTime`. */
  from: z.string(),
  to: z.string(),
  /** See `barsDigest`. */
  sha256: z.string(),
  origin: z.string(),
  imported_at: z.string(),
  /** The columns of the imported file. Without a volume column, volume is 0. */
  columns: z.array(z.enum(BAR_COLUMNS)),
});

export type Manifest = z.infer<typeof manifestSchema>;

const SCHEME = 'catalog://';
const MANIFEST = 'manifest.json';

/** Symbols without characters that have a meaning in a path or a shell. */
const FOLDER = /^[A-Za-z0-9^][A-Za-z0-9^._=-]*$/;

/**
 * An import works in its own folder `.import-…`: `new` becomes the dataset and `old/NAME` is the
 * dataset that it replaces. A killed import leaves this folder behind.
 */
const STAGING = '.import-';

/** The folder of an import that began longer ago than this is deleted. */
const ABANDONED_MS = 3_600_000;

export interface ImportOptions {
  readonly symbol: string;
  readonly timeframe: TimeframeName;
  readonly hasVolume: boolean;
  readonly origin: string;
  readonly importedAt: string;
  readonly replace?: boolean;
}

/**
 * Checks whether `importBars` would accept the name.
 *
 * @throws ServiceError `invalid_data` for an invalid name, `conflict` for one in use.
 */
export async function checkName(
  dir: string,
  { symbol, replace = false }: Pick<ImportOptions, 'symbol' | 'replace'>,
): Promise<void> {
  const target = folderOf(dir, symbol);
  await recover(dir);
  if (!replace && (await exists(target))) throw nameInUse(symbol);
}

/**
 * Adds bars to the catalogue. The dataset appears whole or not at all. If replacing a dataset fails,
 * the old one is restored: immediately, or, after a killed import, at the next access to the catalogue.
 *
 * @param bars already checked
 * @throws ServiceError as `checkName` does; `output_not_writable`.
 */
export async function importBars(
  dir: string,
  bars: Bars,
  options: ImportOptions,
): Promise<Manifest> {
  try {
    return await writeDataset(dir, bars, options);
  } catch (error) {
    throw explainWriteError(dir, error);
  }
}

/**
 * Turns a failed write into `output_not_writable`; returns other errors unchanged. DuckDB wraps
 * system errors in errors of its own.
 */
export function explainWriteError(dir: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ServiceError) return error;
  const isFull = /No space left on device/.test(error.message);
  if (!isFull && !isSystemError(error) && !error.message.startsWith('IO Error: ')) return error;
  const otherwise = 'Make the catalogue writable, or choose another with --catalogue-dir.';
  return new ServiceError('output_not_writable', `cannot write into ${dir}: ${error.message}`, {
    remedy: isFull ? FULL_DISK : writeRemedy(error, otherwise),
    cause: error,
  });
}

async function writeDataset(dir: string, bars: Bars, options: ImportOptions): Promise<Manifest> {
  const { symbol, timeframe, hasVolume, origin, importedAt, replace = false } = options;
  await checkName(dir, options);
  const target = folderOf(dir, symbol);
  const manifest: Manifest = {
    schema: 'service-local/dataset/v1',
    symbol,
    timeframe,
    rows: bars.length,
    from: formatTime(bars.time[0]!),
    to: formatTime(bars.time[bars.length - 1]!),
    sha256: barsDigest(bars),
    origin,
    imported_at: importedAt,
    columns: BAR_COLUMNS.filter((name) => name !== 'volume' || hasVolume),
  };
  makeDirectory(dir);
  const staging = await mkdtemp(join(dir, STAGING));
  const draft = join(staging, 'new');
  const old = join(staging, 'old');
  try {
    await mkdir(draft);
    await mkdir(old);
    await writeParquet(dataFile(draft, manifest), bars, BAR_COLUMNS);
    await writeAtomically(join(draft, MANIFEST), [`${JSON.stringify(manifest, null, 2)}\n`]);
    await flushDirectory(draft);
    if (replace) await rename(target, join(old, symbol)).catch(ignoreAbsence);
    await rename(draft, target).catch((error: unknown) => {
      throw isSystemError(error, 'ENOTEMPTY', 'EEXIST') ? nameInUse(symbol) : error;
    });
    await flushDirectory(dir);
  } finally {
    await restoreReplaced(dir, staging);
    await rm(staging, { recursive: true, force: true });
  }
  return manifest;
}

/** Moves replaced datasets back to their names, unless a new dataset has the name. */
async function restoreReplaced(dir: string, staging: string): Promise<void> {
  const old = join(staging, 'old');
  for (const symbol of (await readdir(old).catch(ignoreAbsence)) ?? []) {
    const target = join(dir, symbol);
    if (!(await exists(target))) await rename(join(old, symbol), target);
  }
}

/**
 * Restores the datasets that killed imports were replacing, and deletes the folders of imports that
 * can no longer be running.
 */
async function recover(dir: string): Promise<void> {
  const names = (await readdir(dir).catch(ignoreAbsence)) ?? [];
  for (const name of names.filter((entry) => entry.startsWith(STAGING))) {
    const staging = join(dir, name);
    try {
      await restoreReplaced(dir, staging);
      const { mtimeMs } = await stat(staging);
      if (Date.now() - mtimeMs > ABANDONED_MS) await rm(staging, { recursive: true, force: true });
    } catch (error) {
      // Another process recovered the folder first, or the catalogue is read-only.
      if (!isSystemError(error)) throw error;
    }
  }
}

export async function datasetNames(dir: string): Promise<string[]> {
  await recover(dir);
  return namesIn(dir);
}

async function namesIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(ignoreAbsence);
  const folders = (entries ?? []).filter((entry) => entry.isDirectory() && isName(entry.name));
  return folders.map(({ name }) => name).toSorted();
}

/**
 * Lists all datasets, and those without a data file or a valid manifest. Writes nothing and reads no
 * bars, unlike `verifyDataset`.
 */
export async function inspectDatasets(
  dir: string,
): Promise<{ readonly names: readonly string[]; readonly damaged: readonly string[] }> {
  const names = await namesIn(dir);
  const isSound = await Promise.all(
    names.map(async (name) => {
      try {
        return await exists(dataFile(folderOf(dir, name), await manifestAt(dir, name)));
      } catch (error) {
        if (error instanceof ServiceError) return false;
        throw error;
      }
    }),
  );
  return { names, damaged: names.filter((_, i) => !isSound[i]) };
}

/** @throws ServiceError `file_not_found`, or `invalid_data` for a damaged manifest. */
export async function readManifest(dir: string, name: string): Promise<Manifest> {
  await recover(dir);
  return manifestAt(dir, name);
}

async function manifestAt(dir: string, name: string): Promise<Manifest> {
  const path = join(folderOf(dir, name), MANIFEST);
  const text = await readFile(path, 'utf8').catch(ignoreAbsence);
  if (text === undefined) throw await noSuchDataset(dir, name);
  const parsed = manifestSchema.safeParse(parseJson(text));
  if (parsed.success && parsed.data.symbol === name) return parsed.data;
  throw new ServiceError('invalid_data', `${path} is not a valid manifest of ${name}`, {
    remedy: `Import the dataset again with --symbol ${name} --replace.`,
    cause: parsed.error,
  });
}

/** Whether a source begins with `catalog://`, as opposed to the path of a file. */
export function isCatalogued(source: string): boolean {
  return source.startsWith(SCHEME);
}

/** Whether a source is `catalog://NAME` with a valid name. */
export function isAddress(source: string): boolean {
  return isCatalogued(source) && isName(source.slice(SCHEME.length));
}

/** Finds the data file of `catalog://NAME`; `undefined` for any other source. */
export async function resolveDataset(
  dir: string,
  source: string,
): Promise<{ readonly path: string; readonly manifest: Manifest } | undefined> {
  if (!isCatalogued(source)) return undefined;
  const name = source.slice(SCHEME.length);
  const manifest = await readManifest(dir, name);
  return { path: dataFile(folderOf(dir, name), manifest), manifest };
}

/**
 * Reads a dataset and compares it with its manifest. Returns no problems for an undamaged one.
 *
 * @throws ServiceError `file_not_found`
 */
export async function verifyDataset(dir: string, name: string): Promise<readonly Problem[]> {
  const folder = folderOf(dir, name);
  await recover(dir);
  if (!(await exists(folder))) throw await noSuchDataset(dir, name);
  try {
    const manifest = await readManifest(dir, name);
    const path = dataFile(folder, manifest);
    const file = await readBars(path);
    const report = checkBars(file);
    if (report.badRows > 0) throw badDataError(file, report, new Map());
    if (barsDigest(file.bars) === manifest.sha256) return [];
    const message = `the ${file.bars.length} bars differ from the ${manifest.rows} that were imported`;
    return [{ code: 'digest_differs', message, file: path }];
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message, problems } = error;
    return problems.length > 0 ? problems : [{ code, message }];
  }
}

function isName(text: string): boolean {
  return SYMBOL.test(text) && FOLDER.test(text);
}

function folderOf(dir: string, name: string): string {
  checkDatasetName(name);
  return join(dir, name);
}

/** @throws ServiceError `invalid_data` for an invalid name. */
export function checkDatasetName(name: string): void {
  if (isName(name)) return;
  throw new ServiceError(
    'invalid_data',
    `${JSON.stringify(name)} is not a valid name of a dataset`,
    {
      remedy: 'Use up to 64 letters, digits and ^ . _ = -, beginning with a letter, a digit or ^.',
    },
  );
}

function dataFile(folder: string, { timeframe }: Manifest): string {
  return join(folder, `${timeframe}.parquet`);
}

async function noSuchDataset(dir: string, name: string): Promise<ServiceError> {
  const names = await namesIn(dir);
  return new ServiceError('file_not_found', `the catalogue ${dir} has no dataset ${name}`, {
    remedy:
      names.length === 0
        ? 'The catalogue is empty. Import a file with `service-local data import FILE`.'
        : `Choose one of: ${names.join(', ')}.`,
  });
}

function nameInUse(name: string): ServiceError {
  return new ServiceError('conflict', `the catalogue already has a dataset ${name}`, {
    remedy: 'Choose another --symbol, or replace the dataset with --replace.',
  });
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(ignoreAbsence)) !== undefined;
}

/** Flushes the file to disk, so that a later rename cannot make incomplete data visible. */
async function flushFile(path: string, flags = 'r+'): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Windows neither supports nor needs this. */
async function flushDirectory(path: string): Promise<void> {
  if (process.platform !== 'win32') await flushFile(path, 'r');
}

function ignoreAbsence(error: unknown): undefined {
  if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) throw error;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
