function area(width, length) {
  return width * length;
}

module.exports = { area };
