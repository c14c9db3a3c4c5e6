import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type * as S3 from '@aws-sdk/client-s3';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { awsFailure, clientOptions, installed, type AwsPlace } from '../cloud/aws.ts';

/** Bytes by key, such as `results/7f3a`. An object appears whole or not at all. */
export interface ObjectStore {
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
  /** @returns undefined if there is no such object */
  readonly get: (key: string) => Promise<Uint8Array | undefined>;
  /** Names of the objects in a folder, without its key. */
  readonly list: (folder: string) => Promise<string[]>;
  /** Names of the objects in a folder that were last written before a time, ms since the Unix epoch. */
  readonly listUnchanged: (folder: string, since: number) => Promise<string[]>;
  /** Deletes an object, or a folder with everything in it. */
  readonly remove: (key: string) => Promise<void>;
}

/** Objects that `DeleteObjects` of S3 accepts at once. */
const MOST_DELETED = 1000;

/**
 * @param place a directory, or `s3://BUCKET/PREFIX`
 * @param at region and endpoint; by default, the AWS SDK finds them like the credentials, for example in
 *   AWS_REGION and AWS_ENDPOINT_URL_S3
 * @throws ServiceError `conflict`, reason `not_installed`; the store throws `storage_unavailable` for a
 *   directory, and errors of `awsFailure`
 */
export async function openObjectStore(place: string, at: AwsPlace = {}): Promise<ObjectStore> {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*?))?\/?$/.exec(place) ?? [];
  if (bucket === undefined) return directoryStore(place);
  const sdk = await installed('@aws-sdk/client-s3', import('@aws-sdk/client-s3'));
  // Servers that speak the protocol of S3 know buckets by path.
  const forcePathStyle = (at.endpoint ?? process.env['AWS_ENDPOINT_URL_S3']) !== undefined;
  const client = new sdk.S3Client({ ...clientOptions(at), forcePathStyle });
  return s3Store(sdk, client, { Bucket: bucket, prefix });
}

function directoryStore(root: string): ObjectStore {
  const attempt = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) throw error;
      throw new ServiceError('storage_unavailable', `cannot ${what}: ${String(error)}`, {
        remedy: 'Check that the volume is mounted and can be written.',
        cause: error,
      });
    }
  };
  return {
    async put(key, bytes) {
      const path = join(root, key);
      const temporary = `${path}.${randomUUID()}.tmp`;
      await attempt(`write ${path}`, async () => {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(temporary, bytes, { flush: true });
        await rename(temporary, path);
      });
    },
    async get(key) {
      const path = join(root, key);
      return attempt(`read ${path}`, () => readFile(path)).catch(missing(undefined));
    },
    async list(folder) {
      const path = join(root, folder);
      const names = await attempt(`read ${path}`, () => readdir(path)).catch(missing([]));
      return names.filter((name) => !name.endsWith('.tmp'));
    },
    async listUnchanged(folder, since) {
      const names = await this.list(folder);
      const isOld = async (name: string): Promise<boolean> => {
        const path = join(root, folder, name);
        const found = await attempt(`read ${path}`, () => stat(path)).catch(missing(undefined));
        return found !== undefined && found.mtimeMs < since;
      };
      const old = await Promise.all(names.map(isOld));
      return names.filter((_, place) => old[place]);
    },
    remove: (key) =>
      attempt(`delete ${key}`, () => rm(join(root, key), { recursive: true, force: true })),
  };
}

function missing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isSystemError(error, 'ENOENT')) return value;
    throw error;
  };
}

function s3Store(
  sdk: typeof S3,
  client: S3.S3Client,
  { Bucket, prefix }: { readonly Bucket: string; readonly prefix: string },
): ObjectStore {
  const keyOf = (key: string): string => (prefix === '' ? key : `${prefix}/${key}`);
  const attempt = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw awsFailure(`${what} in s3://${Bucket}/${prefix}`, error);
    }
  };
  const objectsIn = async (folder: string): Promise<S3._Object[]> => {
    const objects: S3._Object[] = [];
    let ContinuationToken: string | undefined;
    do {
      const command = new sdk.ListObjectsV2Command({
        Bucket,
        Prefix: `${keyOf(folder)}/`,
        ContinuationToken,
      });
      const page = await attempt(`list ${folder}`, () => client.send(command));
      objects.push(...(page.Contents ?? []));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return objects;
  };
  const nameIn = (folder: string, { Key = '' }: S3._Object): string =>
    Key.slice(keyOf(folder).length + 1);
  return {
    async put(key, bytes) {
      const command = new sdk.PutObjectCommand({ Bucket, Key: keyOf(key), Body: bytes });
      await attempt(`write ${key}`, () => client.send(command));
    },
    async get(key) {
      const command = new sdk.GetObjectCommand({ Bucket, Key: keyOf(key) });
      return attempt(`read ${key}`, async () => {
        try {
          const { Body } = await client.send(command);
          return await Body!.transformToByteArray();
        } catch (error) {
          if ((error as Error).name === 'NoSuchKey') return undefined;
          throw error;
        }
      });
    },
    async list(folder) {
      return (await objectsIn(folder)).map((object) => nameIn(folder, object));
    },
    async listUnchanged(folder, since) {
      const old = (await objectsIn(folder)).filter(
        ({ LastModified }) => LastModified !== undefined && LastModified.getTime() < since,
      );
      return old.map((object) => nameIn(folder, object));
    },
    async remove(key) {
      const keys = [keyOf(key), ...(await objectsIn(key)).map(({ Key = '' }) => Key)];
      for (let first = 0; first < keys.length; first += MOST_DELETED) {
        const Objects = keys.slice(first, first + MOST_DELETED).map((Key) => ({ Key }));
        const command = new sdk.DeleteObjectsCommand({ Bucket, Delete: { Objects } });
        await attempt(`delete ${key}`, () => client.send(command));
      }
    },
  };
}
