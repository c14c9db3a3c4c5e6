/** What the verbs `identity administrators …` have in common. */
import { ServiceError } from '../base/errors.ts';
import type { Enrolled, Factors } from '../identity/administrators.ts';
import type { Identity } from '../identity/context.ts';
import type { NewToken } from '../identity/tokens.ts';
import { formatTime } from '../lease/time.ts';
import { ask, readPassword } from './ask.ts';
import type { Answer, Context } from './verb.ts';

export type OwnDatabase = Pick<Identity, 'storage' | 'clock'>;

/**
 * Works on the server's own database, whether a server is running or not, and says which it is.
 * With `mayMake`, one is made where there is none.
 * @throws ServiceError `not_found` where there is none; as `openConfiguredStorage`.
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
      remedy: 'Set SERVICE_LOCAL_HOME or DATABASE_URL to what the server has.',
    });
  }
  message(isNew ? `database: ${name}, which is new` : `database: ${name}`);
  const storage = await openConfiguredStorage(settings.home, io.env);
  try {
    return await work({ storage, clock: Date.now });
  } finally {
    await storage.close();
  }
}

/** Factors that are new, and how an app learns its own. */
interface NewFactors extends Factors {
  readonly otpauth_uri: string;
}

/**
 * Asks a person for a new password and for a code of the app that is to show them from now on. From
 * a script comes only the password: it puts the URI into an app by itself.
 *
 * @throws ServiceError `usage` when nobody can be asked and no password is given.
 */
export async function createFactors(
  context: Context,
  name: string,
  passwordStdin: boolean,
): Promise<NewFactors> {
  const { passwordProblem } = await import('../identity/password.ts');
  const { newTotpSecret } = await import('../identity/totp.ts');
  const { secret: totp_secret, uri: otpauth_uri } = newTotpSecret(name);
  const check = (typed: string): string | true => passwordProblem(typed) ?? true;
  const password = await readPassword(context, passwordStdin, `New password of ${name}:`, check);
  const factors = { password, totp_secret, otpauth_uri };
  if (passwordStdin) return { ...factors, totp_last_step: 0 };
  const same = (typed: string): string | true => typed === password || 'this is another password';
  await readPassword(context, false, 'The same once more:', same);
  return { ...factors, totp_last_step: await confirmApp(context, totp_secret, otpauth_uri) };
}

/** @returns the time step of the code with which the person has shown that the app has the secret. */
async function confirmApp(
  { io, ...context }: Context,
  secret: string,
  uri: string,
): Promise<number> {
  const { totpStep } = await import('../identity/totp.ts');
  const { renderUnicodeCompact } = await import('uqr');
  // Scanners want dark on light, whatever the colours of the terminal are.
  const lines = renderUnicodeCompact(uri)
    .split('\n')
    .map((line) => (io.env['TERM'] === 'dumb' ? line : `\u001B[97;40m${line}\u001B[0m`));
  io.stderr.write(
    `\n${lines.join('\n')}\n\nScan this with an authenticator app, or type this key: ${secret}\n\n`,
  );
  for (;;) {
    const code = await ask({ io, ...context }, 'Code that the app shows now:', '--password-stdin');
    const step = totpStep(secret, code, Date.now());
    if (step !== undefined) return step;
    io.stderr.write('That code is wrong. Is the clock of the phone right?\n');
  }
}

/** Tells what is told once. */
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
      out.line(`${name} can log in now. What follows is shown once; keep it safe.`);
      out.line();
      out.line('Key of the authenticator app:');
      out.line(`  ${otpauth_uri}`);
      out.line();
      out.line('Recovery codes, each good once in place of a code of the app:');
      for (const code of recovery_codes) out.line(`  ${code}`);
      if (!made) return;
      out.line();
      const until = made.expires_at === null ? '' : ` until ${made.expires_at}`;
      out.line(`Token with the scopes ${made.scopes.join(', ')}${until}:`);
      out.line(`  ${made.token}`);
    },
  };
}

/** As the API writes it. */
function tokenData({ narrowing, created_at, expires_at, ...rest }: NewToken) {
  return {
    ...rest,
    ...narrowing,
    created_at: formatTime(created_at),
    expires_at: expires_at === null ? null : formatTime(expires_at),
  };
}
