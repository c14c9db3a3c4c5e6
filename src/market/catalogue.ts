import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from '../base/atomic-file.ts';
import {
  FULL_DISK,
  ServiceError,
  isSystemError,
  writeRemedy,
  type Problem,
} from '../base/errors.ts';
import { makeDirectory } from '../base/make-directory.ts';
import { BAR_COLUMNS, type Bars } from './bars.ts';
import { badDataError, checkBars } from './check.ts';
import { barsDigest } from './digest.ts';
import { readBars } from './read.ts';
import { SYMBOL } from './symbol.ts';
import { formatTime } from './time.ts';
import { TIMEFRAME_NAMES, type TimeframeName } from './timeframe.ts';
import { writeParquet } from './write.ts';

/** `manifest.json` of a dataset, which lies beside `<timeframe>.parquet` in a folder of its name. */
const manifestSchema = z.object({
  schema: z.literal('service-local/dataset/v1'),
  symbol: z.string(),
  timeframe: z.enum(TIMEFRAME_NAMES),
  rows: z.int().positive(),
  /** First and last bar, see `formatTime`. */
  from: z.string(),
  to: z.string(),
  /** See `barsDigest`. */
  sha256: z.string(),
  /** The file it was imported from. */
  origin: z.string(),
  /** RFC 3339. */
  imported_at: z.string(),
  /** The columns that the origin had; volume may lack and is 0 then. */
  columns: z.array(z.enum(BAR_COLUMNS)),
});

export type Manifest = z.infer<typeof manifestSchema>;

const SCHEME = 'catalog://';
const MANIFEST = 'manifest.json';

/** Of all symbols only those without what a path or a shell would take for its own. */
const FOLDER = /^[A-Za-z0-9^][A-Za-z0-9^._=-]*$/;

/**
 * An import works in a folder `.import-…` of its own: `new` becomes the dataset, `old/NAME` was the
 * dataset until then. Killed, it leaves the folder behind.
 */
const STAGING = '.import-';

/** An import that began longer ago than this is taken for dead. */
const ABANDONED_MS = 3_600_000;

export interface ImportOptions {
  /** Also the name of the dataset. */
  readonly symbol: string;
  readonly timeframe: TimeframeName;
  readonly hasVolume: boolean;
  readonly origin: string;
  /** RFC 3339. */
  readonly importedAt: string;
  /** Whether a dataset of this name may be replaced. */
  readonly replace?: boolean;
}

/**
 * Makes sure that `importBars` would take the name, before anyone reads bars for it.
 * @throws ServiceError `invalid_data` for a name that cannot be one, `conflict` for one in use.
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
 * Puts bars, which the caller has checked, into the catalogue. The dataset appears whole or not at
 * all. One that is replaced stays until then and comes back when that fails: at once, or when the
 * import was killed, with the next look at the catalogue.
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
    throw refusedWrite(dir, error);
  }
}

/** DuckDB reports system errors as its own. */
function refusedWrite(dir: string, error: unknown): unknown {
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
    await writeParquet(dataFile(draft, manifest), bars);
    await flushFile(dataFile(draft, manifest));
    await writeAtomically(join(draft, MANIFEST), [`${JSON.stringify(manifest, null, 2)}\n`]);
    await flushDirectory(draft);
    if (replace) await rename(target, join(old, symbol)).catch(ignoreAbsence);
    await rename(draft, target).catch((error: unknown) => {
      throw isSystemError(error, 'ENOTEMPTY', 'EEXIST') ? nameInUse(symbol) : error;
    });
    await flushDirectory(dir);
  } finally {
    await putBack(dir, staging);
    await rm(staging, { recursive: true, force: true });
  }
  return manifest;
}

/** Gives a dataset that was to be replaced its name back, unless another has it by now. */
async function putBack(dir: string, staging: string): Promise<void> {
  const old = join(staging, 'old');
  for (const symbol of (await readdir(old).catch(ignoreAbsence)) ?? []) {
    const target = join(dir, symbol);
    if (!(await exists(target))) await rename(join(old, symbol), target);
  }
}

/**
 * Looks after what killed imports left: what they were replacing comes back, and the rest goes once
 * no import that is still running can need it.
 */
async function recover(dir: string): Promise<void> {
  const names = (await readdir(dir).catch(ignoreAbsence)) ?? [];
  for (const name of names.filter((entry) => entry.startsWith(STAGING))) {
    const staging = join(dir, name);
    try {
      await putBack(dir, staging);
      const { mtimeMs } = await stat(staging);
      if (Date.now() - mtimeMs > ABANDONED_MS) await rm(staging, { recursive: true, force: true });
    } catch (error) {
      // Another process was faster, or the catalogue is one that can only be read.
      if (!isSystemError(error)) throw error;
    }
  }
}

/** Names of all datasets in the catalogue, in order. */
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
 * The names of all datasets, and of those that lack their data or a sound manifest. Only looks: what
 * a killed import left stays as it is, and the bars are not read.
 */
export async function lookAtDatasets(
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

/** @throws ServiceError `file_not_found`, or `invalid_data` when its manifest is damaged. */
export async function readManifest(dir: string, name: string): Promise<Manifest> {
  await recover(dir);
  return manifestAt(dir, name);
}

/** @throws ServiceError as `readManifest` */
async function manifestAt(dir: string, name: string): Promise<Manifest> {
  const path = join(folderOf(dir, name), MANIFEST);
  const text = await readFile(path, 'utf8').catch(ignoreAbsence);
  if (text === undefined) throw await notThere(dir, name);
  const parsed = manifestSchema.safeParse(parseJson(text));
  if (parsed.success && parsed.data.symbol === name) return parsed.data;
  throw new ServiceError('invalid_data', `${path} is damaged`, {
    remedy: `Import the dataset again with --symbol ${name} --replace.`,
    cause: parsed.error,
  });
}

/** Whether a source is `catalog://NAME`, and not the path of a file. */
export function isCatalogued(source: string): boolean {
  return source.startsWith(SCHEME);
}

/** Whether it is `catalog://` and what can name a dataset. */
export function isAddress(source: string): boolean {
  return isCatalogued(source) && isName(source.slice(SCHEME.length));
}

/** Where `catalog://NAME` lies; `undefined` for any other source. */
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
 * Reads a dataset again and compares it with its manifest; no problem means that it is sound.
 * @throws ServiceError `file_not_found` when there is no such dataset.
 */
export async function verifyDataset(dir: string, name: string): Promise<readonly Problem[]> {
  const folder = folderOf(dir, name);
  await recover(dir);
  if (!(await exists(folder))) throw await notThere(dir, name);
  try {
    const manifest = await readManifest(dir, name);
    const path = dataFile(folder, manifest);
    const file = await readBars(path);
    const report = checkBars(file);
    if (report.badRows > 0) throw badDataError(file, report, new Map());
    if (barsDigest(file.bars) === manifest.sha256) return [];
    const message = `${file.bars.length} bars that are not the ${manifest.rows} imported`;
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
  if (isName(name)) return join(dir, name);
  throw new ServiceError('invalid_data', `${JSON.stringify(name)} cannot name a dataset`, {
    remedy: 'Use up to 64 letters, digits and ^ . _ = -, beginning with a letter, a digit or ^.',
  });
}

function dataFile(folder: string, { timeframe }: Manifest): string {
  return join(folder, `${timeframe}.parquet`);
}

async function notThere(dir: string, name: string): Promise<ServiceError> {
  const names = await namesIn(dir);
  return new ServiceError('file_not_found', `the catalogue ${dir} has no dataset ${name}`, {
    remedy:
      names.length === 0
        ? 'It is empty: fill it with `service-local data import FILE`.'
        : `It has: ${names.join(', ')}.`,
  });
}

function nameInUse(name: string): ServiceError {
  return new ServiceError('conflict', `the catalogue has a dataset ${name} already`, {
    remedy: 'Choose another --symbol, or replace it with --replace.',
  });
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(ignoreAbsence)) !== undefined;
}

/** So that what a rename makes visible is on the disk. */
async function flushFile(path: string, flags = 'r+'): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Windows cannot, and has no need to. */
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
