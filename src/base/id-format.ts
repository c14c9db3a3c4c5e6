/** Ids that people choose. They need no escaping in URLs and command lines. */
export const ID_FORMAT = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export const ID_FORMAT_RULE =
  'an id has 1 to 128 letters, digits or . _ : - and begins with a letter or digit';
