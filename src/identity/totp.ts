import { Secret, TOTP } from 'otpauth';

/** RFC 6238 with the parameters that authenticator apps support. */
const TOTP_FORM = { issuer: 'service-local', algorithm: 'SHA1', digits: 6, period: 30 } as const;

/** Accepted difference between the clocks of phone and server, in steps. */
const STEPS_OFF = 1;

export interface TotpSecret {
  /** Base32. */
  readonly secret: string;
  /** `otpauth://…`, for a QR code. */
  readonly uri: string;
}

export function newTotpSecret(administrator: string): TotpSecret {
  const secret = new Secret();
  const totp = new TOTP({ ...TOTP_FORM, label: administrator, secret });
  return { secret: secret.base32, uri: totp.toString() };
}

/** Returns the time step of a code that is valid at `now`. Ignores spaces in the code. */
export function totpStep(secret: string, code: string, now: number): number | undefined {
  const token = code.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const totp = new TOTP({ ...TOTP_FORM, secret });
  const delta = totp.validate({ token, timestamp: now, window: STEPS_OFF });
  return delta === null ? undefined : totp.counter({ timestamp: now }) + delta;
}

/** Returns the latest time step whose code is accepted at `now`. */
export function lastStepAt(now: number): number {
  return TOTP.counter({ period: TOTP_FORM.period, timestamp: now }) + STEPS_OFF;
}
