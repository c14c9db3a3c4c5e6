import type { createEnrollmentCode } from '../../../../api/devices.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'create a code to enroll a machine as a device',
  description:
    'The code is shown only once and enrolls one machine. Enter it there with `service-local license enroll`.',
  options: {
    deployment: { value: 'id', description: 'installation of the device', required: true },
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
    context.message(`enrolls one machine, until ${code.expires_at}`);
    return { data: code, show: (out) => out.line(code.code) };
  },
});
