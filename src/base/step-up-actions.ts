export const STEP_UP_ACTIONS = [
  'identity.license.revoke',
  'identity.passkey.add',
  'identity.passkey.delete',
  'bots.validation_report.attest',
  'identity.root.set',
  'identity.license.give',
] as const;

export type StepUpAction = (typeof STEP_UP_ACTIONS)[number];
