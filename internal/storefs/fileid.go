package storefs

// FileID tells a file from every other, also from one that gets its number later, where the system helps.
type FileID struct {
	Dev, Ino uint64
	Birth    int64  // Unix nanoseconds
	Gen      uint32 // 0 where the file system has none
}
