import type { createEnrollmentCode } from '../../../../api/devices.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'make a code with which a machine becomes a device',
  description:
    'The code is shown this once and is good for one machine: run `service-local license enroll` there with it.',
  options: {
    deployment: { value: 'id', description: 'to which the device will belong', required: true },
  },
  examples: [
    'identity devices enroll-code --deployment acme-tokyo',
    'identity devices enroll-code --deployment acme-tokyo --json | jq -r .code',
  ],
  async run(server, _args, { deployment }, context) {
    const code = await server.call<typeof createEnrollmentCode>(
      'post',
      '/identity/deployments/{deployment_id}/enrolment-codes',
      { params: { deployment_id: deployment } },
    );
    context.message(`good for one machine, until ${code.expires_at}`);
    return { data: code, show: (out) => out.line(code.code) };
  },
});
