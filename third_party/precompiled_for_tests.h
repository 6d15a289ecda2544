// What tests include beyond precompiled.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
