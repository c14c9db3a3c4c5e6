import { ServiceError } from '../base/errors.ts';
import type { Enrolled, Factors } from '../identity/administrators.ts';
import type { IdentityStore } from '../identity/context.ts';
import type { NewToken } from '../identity/tokens.ts';
import { formatTime } from '../lease/time.ts';
import { ask, readPassword } from './ask.ts';
import type { Answer, Context } from './verb.ts';

export type OwnDatabase = IdentityStore;

/**
 * Opens the server's own database, whether or not a server is running, and reports its name.
 * With `mayMake`, a missing database is created.
 * @throws ServiceError `not_found` if the database is missing; as `openConfiguredStorage`
 */
export async function withDatabase<T>(
  { settings, io, message }: Context,
  work: (identity: OwnDatabase) => Promise<T>,
  { mayMake = false } = {},
): Promise<T> {
  const { openConfiguredStorage, describeStorage } = await import('../storage/storage-location.ts');
  const { name, isNew } = describeStorage(settings.home, io.env);
  if (isNew && !mayMake) {
    throw new ServiceError('not_found', `there is no database ${name}`, {
      remedy: 'Set SERVICE_LOCAL_HOME or DATABASE_URL as on the server.',
    });
  }
  message(isNew ? `database: ${name} (new)` : `database: ${name}`);
  const storage = await openConfiguredStorage(settings.home, io.env);
  try {
    return await work({ storage, clock: Date.now });
  } finally {
    await storage.close();
  }
}

interface NewFactors extends Factors {
  readonly otpauth_uri: string;
}

/**
 * Prompts for a new password and for a code of an authenticator app to which the new secret was
 * added. With `passwordStdin`, reads only the password; the script adds the returned URI to an app.
 *
 * @throws ServiceError `usage` if prompting is not possible and no password is given
 */
export async function createFactors(
  context: Context,
  name: string,
  passwordStdin: boolean,
): Promise<NewFactors> {
  const { newTotpSecret } = await import('../identity/totp.ts');
  const { secret: totp_secret, uri: otpauth_uri } = newTotpSecret(name);
  const message = `New password of ${name}:`;
  const password = passwordStdin
    ? await readPassword(context, true, message)
    : await confirmPassword(context, message);
  const factors = { password, totp_secret, otpauth_uri };
  if (passwordStdin) return { ...factors, totp_last_step: 0 };
  return { ...factors, totp_last_step: await confirmApp(context, totp_secret, otpauth_uri) };
}

/** Prompts for a new password and its repetition until it is acceptable and both are equal. */
async function confirmPassword(context: Context, message: string): Promise<string> {
  const { passwordProblem } = await import('../identity/password.ts');
  for (;;) {
    const password = await readPassword(context, false, message);
    const problem =
      passwordProblem(password) ??
      ((await readPassword(context, false, 'Repeat the password:')) === password
        ? undefined
        : 'the passwords differ');
    if (problem === undefined) return password;
    context.io.stderr.write(`${problem}; enter the password again.\n`);
  }
}

/** Returns the time step of a correct code, which proves that the app has the secret. */
async function confirmApp(
  { io, ...context }: Context,
  secret: string,
  uri: string,
): Promise<number> {
  const { totpStep } = await import('../identity/totp.ts');
  const { renderUnicodeCompact } = await import('uqr');
  // Scanners need dark on light, whatever the colors of the terminal.
  const lines = renderUnicodeCompact(uri)
    .split('\n')
    .map((line) => (io.env['TERM'] === 'dumb' ? line : `\u001B[97;40m${line}\u001B[0m`));
  io.stderr.write(
    `\n${lines.join('\n')}\n\nScan this with an authenticator app, or enter this key: ${secret}\n\n`,
  );
  for (;;) {
    const code = await ask({ io, ...context }, 'Code that the app shows:', '--password-stdin');
    const step = totpStep(secret, code, Date.now());
    if (step !== undefined) return step;
    io.stderr.write('That code is wrong. Check the clock of the phone.\n');
  }
}

/** Prints the secrets, which cannot be shown again. */
export function enrolledAnswer(
  { administrator_id, name, recovery_codes, token }: Enrolled,
  { otpauth_uri }: NewFactors,
): Answer {
  const made = token && tokenData(token);
  return {
    data: {
      administrator_id,
      name,
      otpauth_uri,
      recovery_codes,
      ...(made && { token: made }),
    },
    show(out) {
      out.line(
        `${name} can log in now. The following secrets are shown only once; keep them safe.`,
      );
      out.line();
      out.line('Key of the authenticator app:');
      out.line(`  ${otpauth_uri}`);
      out.line();
      out.line('Recovery codes, each valid once in place of a code of the app:');
      for (const code of recovery_codes) out.line(`  ${code}`);
      if (!made) return;
      out.line();
      const until = made.expires_at === null ? '' : ` until ${made.expires_at}`;
      out.line(`Token with the scopes ${made.scopes.join(', ')}${until}:`);
      out.line(`  ${made.token}`);
    },
  };
}

function tokenData({ narrowing, created_at, expires_at, ...rest }: NewToken) {
  return {
    ...rest,
    ...narrowing,
    created_at: formatTime(created_at),
    expires_at: expires_at === null ? null : formatTime(expires_at),
  };
}
