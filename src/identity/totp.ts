import { Secret, TOTP } from 'otpauth';

/** As all authenticator apps have it: RFC 6238 with SHA-1, six digits and steps of 30 s. */
const TOTP_FORM = { issuer: 'service-local', algorithm: 'SHA1', digits: 6, period: 30 } as const;

/** How many steps the clock of a phone may be early or late. */
const STEPS_OFF = 1;

/** What an authenticator app and the server share. */
export interface TotpSecret {
  /** Base32. */
  readonly secret: string;
  /** `otpauth://…`: what the app reads from a QR code. */
  readonly uri: string;
}

export function newTotpSecret(administrator: string): TotpSecret {
  const secret = new Secret();
  const totp = new TOTP({ ...TOTP_FORM, label: administrator, secret });
  return { secret: secret.base32, uri: totp.toString() };
}

/** The time step of a code that is right at `now`, however it is spaced; else `undefined`. */
export function totpStep(secret: string, code: string, now: number): number | undefined {
  const token = code.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const totp = new TOTP({ ...TOTP_FORM, secret });
  const delta = totp.validate({ token, timestamp: now, window: STEPS_OFF });
  return delta === null ? undefined : totp.counter({ timestamp: now }) + delta;
}

/** The last time step of which a code is accepted at `now`. */
export function lastStepAt(now: number): number {
  return TOTP.counter({ period: TOTP_FORM.period, timestamp: now }) + STEPS_OFF;
}
