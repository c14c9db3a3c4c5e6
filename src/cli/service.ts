import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, readFile, rm, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { daemonProgram } from '../../daemon/program.ts';
import {
  serviceEnvironment,
  type Service,
  type ServiceManager,
  type ServiceScope,
} from '../../daemon/service-unit.ts';
import { writeAtomically } from '../base/atomic-file.ts';
import { isLocked } from '../base/file-lock.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';
import { licenseFiles } from '../gate/license-files.ts';
import { makeDirectory, nearestExisting } from '../base/make-directory.ts';
import { oldestNode } from '../base/package-version.ts';
import type { Context } from './verb.ts';

type Command = ServiceManager['stop'];

const execute = promisify(execFile);

/**
 * Installs the daemon as a service and starts it. Replaces a running service of the same home, and
 * restores that service on failure.
 *
 * @param owner owner of new directories; undefined if that is this user.
 * @throws ServiceError `conflict` if a daemon runs that the service manager did not start;
 *   `output_not_writable`; `failure` with the output of the service manager
 */
export async function installService(
  manager: ServiceManager,
  service: Service,
  { home, owner }: { readonly home: string; readonly owner?: Owner | undefined },
): Promise<void> {
  const { path, describe, read, reload, start, stop } = manager;
  const { lock } = daemonFiles(home);
  const former = await explainWriteErrors(path, () => readIfThere(path));
  const wasRunning = former !== undefined && (await runCommand(manager.isRunning)) === undefined;
  const isFormerOfHome =
    former !== undefined && read(former).environment['SERVICE_LOCAL_HOME'] === home;
  if (isLocked(lock) && !(wasRunning && isFormerOfHome)) throw otherDaemonError(home);
  await explainWriteErrors(path, async () => {
    // The service itself may not create them if the rest of the disk is read-only for it.
    for (const directory of service.writable) {
      for (const made of makeDirectory(directory, 0o700)) {
        if (owner !== undefined) await chown(made, owner.uid, owner.gid);
      }
    }
    makeDirectory(dirname(path));
    await writeUnit(path, describe(service));
  });
  try {
    await runOrThrow(reload, UNREACHABLE);
    await runCommand(stop);
    if (isLocked(lock)) throw otherDaemonError(home);
    await runOrThrow(start, NOT_STARTED);
  } catch (error) {
    if (former === undefined) {
      await runCommand(stop);
      await rm(path, { force: true });
    } else await writeUnit(path, former);
    await runCommand(reload);
    if (wasRunning) await runCommand(start);
    throw error;
  }
}

const UNREACHABLE =
  'Nothing was changed. Log in as this user directly, not with su or sudo; or use --system, as root. Without a service manager, as in a container, start the daemon with `service-local daemon run`.';
const NOT_STARTED =
  'The previous service was restored. See the log of the service manager and the output of `service-local daemon run`.';

function otherDaemonError(home: string): ServiceError {
  return new ServiceError('conflict', `a daemon that is not a service runs for ${home}`, {
    reason: 'locked',
    remedy: 'Stop it with `service-local daemon stop`, and run this command again.',
  });
}

async function readIfThere(path: string): Promise<string | undefined> {
  return existsSync(path) ? readFile(path, 'utf8') : undefined;
}

/** Makes the file readable to all users, whatever the umask. */
async function writeUnit(path: string, text: string): Promise<void> {
  await writeAtomically(path, [text], { check: (temporary) => chmod(temporary, 0o644) });
}

export interface Uninstalled {
  /** False if no service was installed. */
  readonly removed: boolean;
  /** Set if the service manager did not reload its configuration. */
  readonly untold: string | undefined;
}

/** @throws ServiceError `output_not_writable`; `failure` if the daemon still runs */
export async function uninstallService(manager: ServiceManager): Promise<Uninstalled> {
  const { path, read, reload, stop, traces } = manager;
  const text = await explainWriteErrors(path, () => readIfThere(path));
  await runCommand(stop);
  if (text === undefined) return { removed: false, untold: undefined };
  await explainWriteErrors(path, () => rm(path));
  const why = await runCommand(reload);
  if (why === undefined) return { removed: true, untold: undefined };
  for (const trace of traces) await explainWriteErrors(trace, () => rm(trace, { force: true }));
  const home = read(text).environment['SERVICE_LOCAL_HOME'];
  if (home !== undefined && isLocked(daemonFiles(home).lock)) {
    throw new ServiceError('failure', `${path} is removed, but its daemon still runs: ${why}`, {
      remedy: `Stop it with \`SERVICE_LOCAL_HOME=${home} service-local daemon stop\`.`,
    });
  }
  return {
    removed: true,
    untold: `the service manager did not reload its configuration, which is harmless: ${why}`,
  };
}

async function explainWriteErrors<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('output_not_writable', `${path}: ${error.message}`, {
      remedy: writeRemedy(
        error,
        'Run the command as a user who may write there, or without --system.',
      ),
      cause: error,
    });
  }
}

async function runOrThrow(command: Command, remedy: string): Promise<void> {
  const why = await runCommand(command);
  if (why !== undefined) throw new ServiceError('failure', why, { remedy });
}

/** Returns why the command failed; undefined if it succeeded. */
async function runCommand(command: Command): Promise<string | undefined> {
  const [program, ...args] = command;
  try {
    await execute(program, args);
    return undefined;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return `the program ${program} is missing`;
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    return `${command.join(' ')}: ${stderr.trim() || message}`;
  }
}

export async function thisService(
  scope: ServiceScope,
  {
    settings,
    settingSources,
    io,
  }: Pick<Context, 'settings' | 'settingSources'> & { readonly io: Pick<Context['io'], 'env'> },
): Promise<{
  readonly service: Service;
  readonly owner: Owner | undefined;
  readonly warnings: readonly string[];
}> {
  const { home, server_url, server_insecure } = settings;
  const program = daemonProgram();
  const { environment, secret } = serviceEnvironment(io.env);
  // The daemon itself reads settings from files.
  const isTyped = /^(--|SERVICE_)/.test(settingSources.server_url[0].origin);
  const { server_insecure: allowed } = settingSources;
  const isAllowed =
    server_insecure && !allowed.some(({ value, origin }) => value && isFile(origin));
  const { lease, keyset } = licenseFiles(home, io.env);
  const warnings = secret.map(
    (name) => `${name} is omitted: it contains a password, and all users can read the service file`,
  );
  const [node, ...args] = program;
  if (isCached(node)) {
    warnings.push(
      `the service runs a Node from npm's cache, which npm may delete; install Node ${oldestNode()} or newer, then repeat \`service-local daemon install\``,
    );
  }
  if (args.some(isCached)) {
    warnings.push(
      "the service runs service-local from npm's cache, which npm may delete; install service-local permanently, then repeat `service-local daemon install`",
    );
  }
  const owner = scope === 'system' ? await ownerOf(home, io.env) : undefined;
  return {
    service: {
      program,
      environment: {
        SERVICE_LOCAL_HOME: home,
        ...(isTyped && { SERVICE_LOCAL_SERVER_URL: server_url }),
        ...(isAllowed && { SERVICE_LOCAL_SERVER_INSECURE: 'true' }),
        ...environment,
      },
      writable: [...new Set([home, dirname(lease), dirname(keyset)])],
      user: owner?.name,
    },
    owner,
    warnings,
  };
}

function isFile(origin: string): boolean {
  return !/^(--|SERVICE_)/.test(origin) && origin !== 'default';
}

function isCached(word: string): boolean {
  return word.includes('/_npx/');
}

/** The user that a system service runs as. */
interface Owner {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The only user who can read the files in the home directory, or will be able to. */
async function ownerOf(home: string, env: NodeJS.ProcessEnv): Promise<Owner> {
  const { gid, username: name } = userInfo();
  const uid = process.getuid!();
  const { SUDO_UID, SUDO_GID, SUDO_USER } = env;
  const there = nearestExisting(home);
  const stats = await stat(there);
  if (stats.uid !== uid && (there === home || uid === 0)) {
    const isCaller = SUDO_USER !== undefined && String(stats.uid) === SUDO_UID;
    const { uid: owner } = stats;
    return { name: isCaller ? SUDO_USER : String(owner), uid: owner, gid: stats.gid };
  }
  // If only root can enter the parent directory, the home is root's own.
  const isForCaller = there !== home && uid === 0 && (stats.mode & 0o001) !== 0;
  return isForCaller && SUDO_USER
    ? { name: SUDO_USER, uid: Number(SUDO_UID), gid: Number(SUDO_GID) }
    : { name, uid, gid };
}
