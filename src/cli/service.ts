import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { daemonFiles } from '../../daemon/files.ts';
import { daemonProgram } from '../../daemon/program.ts';
import {
  serviceEnvironment,
  type Service,
  type ServiceManager,
  type ServiceScope,
} from '../../daemon/service-unit.ts';
import { writeAtomically } from '../atomic-file.ts';
import { isLocked } from '../client/lock.ts';
import { isSystemError, ServiceError } from '../errors.ts';
import { licenseFiles } from '../license-files.ts';
import { makeDirectory } from '../make-directory.ts';
import type { Context } from './verb.ts';

type Command = ServiceManager['stop'];

const run = promisify(execFile);

/**
 * Has the service manager start the daemon, now and from now on; one that it has started already
 * makes room for the new one.
 *
 * @throws ServiceError `conflict` where a daemon runs that is not the service manager's;
 * `output_not_writable`; `failure` with what the service manager says.
 */
export async function installService(
  { path, describe, stop, start }: ServiceManager,
  service: Service,
  home: string,
): Promise<void> {
  await run(...split(stop)).catch(() => {});
  if (isLocked(daemonFiles(home).lock)) {
    throw new ServiceError('conflict', `a daemon runs for ${home} that is no service`, {
      reason: 'locked',
      remedy: 'Stop it with `service-local daemon stop`, and run this again.',
    });
  }
  try {
    // The service may not make it where the rest of the disk is read-only for it.
    makeDirectory(home, 0o700);
    makeDirectory(dirname(path));
    await writeAtomically(path, [describe(service)], { mode: 0o644 });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('output_not_writable', `${path}: ${error.message}`, {
      remedy: 'Run it as one who may write there, or without --system.',
      cause: error,
    });
  }
  for (const command of start) await succeed(command, path);
}

/** @returns whether there was one. */
export async function uninstallService({ path, stop, forget }: ServiceManager): Promise<boolean> {
  await run(...split(stop)).catch(() => {});
  try {
    await rm(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    if (!isSystemError(error)) throw error;
    throw new ServiceError('output_not_writable', `${path}: ${error.message}`, {
      remedy: 'Run it as one who may remove it.',
      cause: error,
    });
  }
  for (const command of forget) await succeed(command, path);
  return true;
}

async function succeed(command: Command, path: string): Promise<void> {
  try {
    await run(...split(command));
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    const why = stderr.trim() || message;
    throw new ServiceError('failure', `${command.join(' ')}: ${why}`, {
      remedy: `Put it right and run that again; ${path} is written.`,
      cause: error,
    });
  }
}

function split([program, ...args]: Command): [program: string, args: string[]] {
  return [program, args];
}

/** What the service manager has to know, taken from how this very command runs. */
export async function thisService(
  scope: ServiceScope,
  { settings, settingSources, io }: Pick<Context, 'settings' | 'settingSources' | 'io'>,
): Promise<{ readonly service: Service; readonly warnings: readonly string[] }> {
  const { home, server_url } = settings;
  const program = daemonProgram();
  const { environment, secret } = serviceEnvironment(io.env);
  // What a file says, the daemon reads there itself.
  const isTyped = /^(--|SERVICE_)/.test(settingSources.server_url[0].origin);
  const { lease, keyset } = licenseFiles(home, io.env);
  const warnings = secret.map(
    (name) => `${name} is left out: it has a password, and everybody may read the service's file`,
  );
  if (program.some((word) => word.includes('/_npx/'))) {
    warnings.push('this runs from a cache that npm empties: install service-local for good first');
  }
  return {
    service: {
      program,
      environment: {
        SERVICE_LOCAL_HOME: home,
        ...(isTyped && { SERVICE_LOCAL_SERVER_URL: server_url }),
        ...environment,
      },
      writable: [...new Set([home, dirname(lease), dirname(keyset)])],
      user: scope === 'system' ? await ownerOf(home, io.env) : undefined,
    },
    warnings,
  };
}

/** The only user whom the files in the home directory let in. */
async function ownerOf(home: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { uid, username } = userInfo();
  const owner = existsSync(home) ? (await stat(home)).uid : uid;
  if (owner === uid) return username;
  const { SUDO_UID, SUDO_USER = '' } = env;
  return String(owner) === SUDO_UID ? SUDO_USER : String(owner);
}
