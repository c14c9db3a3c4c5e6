/** A root and a signed keyset for the API's examples; their keys are public test keys. */
export const EXAMPLE_TRUST = {
  roots: [
    {
      payloadType: 'application/vnd.service-local.license-root.v1+json',
      payload: [
        'eyJleHBpcmVzX2F0IjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJpc3N1ZWRfYXQiOiIyMDI2LTAxLTA1VDA5OjMw',
        'OjAwWiIsImlzc3VlciI6InNlcnZpY2UtbG9jYWwiLCJrZXlzIjpbeyJjcnYiOiJFZDI1NTE5Iiwia2lkIjoiRTkx',
        'NlhUakpDSzgydkFpYkVHR2hCM2xEVjd3QU52bExmeGlDTlRxZm9fYyIsImt0eSI6Ik9LUCIsIngiOiJFNWoyTEcw',
        'YVJYeFJ1bXBMWHoyOUwybjhxVElXSVkzSW1YNUJhOUY5azhvIn1dLCJ0aHJlc2hvbGQiOjEsInZlcnNpb24iOjF9',
      ].join(''),
      signatures: [
        {
          keyid: 'E916XTjJCK82vAibEGGhB3lDV7wANvlLfxiCNTqfo_c',
          sig: 'DPylzrH+kxagA5IutA2NCQ8q0IYM7EzmYRWxenEL6Iv4scl2gq7feJSgHUxzujgMNhuHY8P1dZtWsoFMqebdDw==',
        },
      ],
    },
  ],
  keyset: {
    payloadType: 'application/vnd.service-local.license-keyset.v1+json',
    payload: [
      'eyJleHBpcmVzX2F0IjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJpc3N1ZWRfYXQiOiIyMDI2LTAxLTA1VDA5OjMw',
      'OjAwWiIsImlzc3VlciI6InNlcnZpY2UtbG9jYWwiLCJrZXlzIjpbeyJjcnYiOiJFZDI1NTE5Iiwia2lkIjoiMFl1',
      'Q1c0TjlMS1BzTzBqUEtLZ0RZbzNIN0hIMkxraVQ4WUx1RkdzbFpYSSIsImt0eSI6Ik9LUCIsIngiOiJibm9jM1Nt',
      'd3Q0X1JPdlRGV1lfdjlPOHFseFp1UEtieTVQdjh6WUJRV19FIn1dLCJyZXRpcmVkIjpbXSwidmVyc2lvbiI6MX0=',
    ].join(''),
    signatures: [
      {
        keyid: 'E916XTjJCK82vAibEGGhB3lDV7wANvlLfxiCNTqfo_c',
        sig: 'bv21TzVanU7cKy8tkYRCigGRdGW8ilQmEJo+YL/l6Kw4CGwe7rdWipw5P1QudS+M7o118Z9rWPDnpOe63P6RCQ==',
      },
    ],
  },
};

export const EXAMPLE_ROOT_FINGERPRINT = 'wsW-LTGCsfnXBT5YePxHExOz3BKumyUT5-kbFkozUMs';

/** The public key of RFC 8032, §7.1, test 2. */
export const EXAMPLE_NEXT_KEY = 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw';
