const { NODE_COMPILE_CACHE } = process.env;
/** What threads need of the environment, which has the signing key in it. */
export const THREAD_ENV = { ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
